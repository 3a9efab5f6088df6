"""The variants and locations of a shop at the platform. Levels are in `sync`."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.postgres.tasks import Task


class CatalogVariant(Struct, frozen=True):
    """A variant as the platform has it.

    item_gid     its inventory item, to which levels belong
    tracked      whether the platform counts it; None: not known
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
    """A location with stock.

    fulfillment_service    whether a fulfillment service counts its stock; None: not known
    """

    gid: str
    name: str
    active: bool
    fulfillment_service: bool | None
    updated_at: dt.datetime | None = None


class Import(Struct, frozen=True):
    """An import that is under way.

    bulk_gid        the platform's operation; None: it has not started yet
    stored_lines    how many lines of its result are stored
    """

    id: int
    bulk_gid: str | None
    stored_lines: int


class ImportTask(Struct):
    """The arguments of the task of an import."""

    shop_id: int
    import_id: int


IMPORT = Task("import_catalog", ImportTask)
"""Do the next step of the import of a shop."""
