"""The query of an import, and the lines of its result."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.catalog.model import CatalogVariant, Location
from holdfast.inventory.sync.model import ObservedLevel

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
  locations(first: 50, after: $after, includeInactive: true, includeLegacy: true) {
    nodes { id name isActive isFulfillmentService }
    pageInfo { hasNextPage endCursor }
  }
}
"""


class _NodeReference(Struct):
    id: str


class _ProductNode(Struct):
    id: str
    title: str


class _ItemNode(Struct):
    id: str
    tracked: bool


class _VariantLine(Struct, tag_field="__typename", tag="ProductVariant", rename="camel"):
    id: str
    title: str
    updated_at: dt.datetime
    product: _ProductNode
    inventory_item: _ItemNode
    sku: str | None = None


class _LineQuantity(Struct):
    quantity: int


class _LevelLine(Struct, tag_field="__typename", tag="InventoryLevel", rename="camel"):
    id: str
    updated_at: dt.datetime
    item: _NodeReference
    location: _NodeReference
    quantities: list[_LineQuantity]


class LocationNode(Struct, rename="camel"):
    """A location as the platform shows it."""

    id: str
    name: str
    is_active: bool
    is_fulfillment_service: bool

    @property
    def location(self) -> Location:
        return Location(self.id, self.name, self.is_active, self.is_fulfillment_service)


class ImportLines(NamedTuple):
    """The variants and levels of some lines."""

    variants: list[CatalogVariant]
    levels: list[ObservedLevel]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "ImportLines":
        """Decode lines. Raises `msgspec.DecodeError` for a line of another kind."""
        variants: dict[str, CatalogVariant] = {}
        levels: dict[str, ObservedLevel] = {}
        for line in lines:
            match _DECODER.decode(line):
                case _VariantLine() as node:
                    product, item = node.product, node.inventory_item
                    variants[node.id] = CatalogVariant(
                        node.id, product.id, product.title, node.title, node.sku, item.id, item.tracked,
                        node.updated_at,
                    )  # fmt: skip
                case _LevelLine() as node if node.quantities:
                    levels[node.id] = ObservedLevel(
                        node.item.id, node.location.id, node.id, node.quantities[0].quantity, node.updated_at
                    )
                case _:
                    pass
        return cls([*variants.values()], [*levels.values()])


_DECODER = msgspec.json.Decoder(_VariantLine | _LevelLine)
