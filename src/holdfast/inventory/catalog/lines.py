"""What is asked of the platform for an import, and the lines of its answer."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.catalog.model import Location, Variant
from holdfast.inventory.sync.model import Observed

QUERY = """
query {
  productVariants {
    edges { node {
      __typename id title sku updatedAt
      product { id title }
      inventoryItem {
        id tracked
        inventoryLevels {
          edges { node {
            __typename id updatedAt
            item { id }
            location { id }
            quantities(names: ["available"]) { quantity }
          } }
        }
      }
    } }
  }
}
"""
LOCATIONS = """
query ReadLocations($after: String) {
  locations(first: 50, after: $after, includeInactive: true) {
    nodes { id name isActive }
    pageInfo { hasNextPage endCursor }
  }
}
"""


class _Id(Struct):
    id: str


class _Product(Struct):
    id: str
    title: str


class _Item(Struct):
    id: str
    tracked: bool


class _Variant(Struct, tag_field="__typename", tag="ProductVariant", rename="camel"):
    id: str
    title: str
    updated_at: dt.datetime
    product: _Product
    inventory_item: _Item
    sku: str | None = None


class _Quantity(Struct):
    quantity: int


class _Level(Struct, tag_field="__typename", tag="InventoryLevel", rename="camel"):
    id: str
    updated_at: dt.datetime
    item: _Id
    location: _Id
    quantities: list[_Quantity]


class LocationNode(Struct, rename="camel"):
    """A location as the platform shows it."""

    id: str
    name: str
    is_active: bool

    @property
    def location(self) -> Location:
        return Location(self.id, self.name, self.is_active)


class Lines(NamedTuple):
    """What some lines say."""

    variants: list[Variant]
    levels: list[Observed]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "Lines":
        """Raises `msgspec.DecodeError` for a line that says something else."""
        variants: dict[str, Variant] = {}
        levels: dict[str, Observed] = {}
        for line in lines:
            match _DECODER.decode(line):
                case _Variant() as found:
                    product, item = found.product, found.inventory_item
                    variants[found.id] = Variant(
                        found.id, product.id, product.title, found.title, found.sku, item.id, item.tracked,
                        found.updated_at,
                    )  # fmt: skip
                case _Level() as found if found.quantities:
                    levels[found.id] = Observed(
                        found.item.id, found.location.id, found.id, found.quantities[0].quantity, found.updated_at
                    )
                case _:
                    pass
        return cls([*variants.values()], [*levels.values()])


_DECODER = msgspec.json.Decoder(_Variant | _Level)
