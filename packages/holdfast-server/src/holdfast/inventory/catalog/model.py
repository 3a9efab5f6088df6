"""The variants and locations of a shop at the platform, and the names of variants. Levels are in `sync`."""

import datetime as dt
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from holdfast.kit.contract.command import Command
from holdfast.kit.postgres.transactions import Task


class CatalogVariant(Struct, frozen=True):
    """A variant as the platform has it.

    item_gid     its inventory item, to which levels belong
    tracked      whether the platform counts it; None: not known
    picture      the address of a picture of its product; None: not known, or there is none
    """

    gid: str
    product_gid: str
    product_title: str
    title: str
    sku: str | None
    item_gid: str
    tracked: bool | None
    updated_at: dt.datetime | None = None
    picture: str | None = None


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


ONLY_VARIANT = "Default Title"
"""The platform's title of the variant of a product that has only one."""

MAX_VARIANTS = 1_000
"""The most variants in one request for names."""


class NameVariants(Command):
    """Get the names of variants."""

    gids: Annotated[list[str], Meta(max_length=MAX_VARIANTS)]


class VariantName(NamedTuple):
    """The title and SKU of a variant, as far as they are known."""

    title: str | None
    sku: str | None

    def words(self, gid: str) -> str:
        """The name of the variant with this id: its title, else its SKU, else the number in the id."""
        return self.title or self.sku or f"variant {gid.rpartition('/')[2]}"
