"""What a shop has at the platform: variants and locations. Levels are in `sync`."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.tasks import Task


class Variant(Struct, frozen=True):
    """A variant as the platform has it.

    item_gid     its inventory item, which levels belong to
    tracked      whether the platform counts it; None: it was not said
    """

    gid: str
    product_gid: str
    product_title: str
    title: str
    sku: str | None
    item_gid: str
    tracked: bool | None
    updated_at: dt.datetime | None = None


class Location(Struct, frozen=True):
    """A place where stock is kept."""

    gid: str
    name: str
    active: bool
    updated_at: dt.datetime | None = None


class Import(Struct, frozen=True):
    """An import that is under way.

    bulk_gid        the platform's operation; None: it was not begun yet
    stored_lines    how many lines of its result are stored
    """

    id: int
    bulk_gid: str | None
    stored_lines: int


class OfImport(Struct):
    """A task about an import."""

    shop_id: int
    import_id: int


IMPORT = Task("import_catalog", OfImport)
"""Bring a shop's import forward."""
