"""The query of an import, and the lines of its result."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.catalog.model import CatalogVariant, Location
from holdfast.inventory.shopify.display_text import display_text, storable_json
from holdfast.inventory.sync.model import ObservedLevel

QUERY = """
query {
  productVariants {
    edges { node {
      __typename id title sku
      product { id title updatedAt }
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


class _ProductNode(Struct, rename="camel"):
    id: str
    updated_at: dt.datetime
    title: Any = None


class _ItemNode(Struct):
    id: str
    tracked: bool | None = None


class _VariantLine(Struct, tag_field="__typename", tag="ProductVariant", rename="camel"):
    """A variant. The webhooks of products have the date of the product, so that one is compared."""

    id: str
    product: _ProductNode
    inventory_item: _ItemNode
    title: Any = None
    sku: Any = None


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
    is_active: bool
    is_fulfillment_service: bool
    name: Any = None

    @property
    def location(self) -> Location:
        return Location(self.id, display_text(self.name), self.is_active, self.is_fulfillment_service)


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
            match _DECODER.decode(storable_json(line)):
                case _VariantLine() as node:
                    product, item = node.product, node.inventory_item
                    variants[node.id] = CatalogVariant(
                        node.id,
                        product.id,
                        display_text(product.title),
                        display_text(node.title),
                        display_text(node.sku) or None,
                        item.id,
                        item.tracked is not False,
                        product.updated_at,
                    )
                case _LevelLine() as node if node.quantities:
                    levels[node.id] = ObservedLevel(
                        node.item.id, node.location.id, node.id, node.quantities[0].quantity, node.updated_at
                    )
                case _:
                    pass
        return cls([*variants.values()], [*levels.values()])


_DECODER = msgspec.json.Decoder(_VariantLine | _LevelLine, strict=False)
