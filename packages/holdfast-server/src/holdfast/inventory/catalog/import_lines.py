"""The queries of an import, and the lines of its result."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.catalog.model import CatalogVariant, Location
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import display_text, storable_json
from holdfast.inventory.sync.model import ObservedLevel

BULK_QUERY = """
query {
  productVariants {
    edges { node {
      __typename id title sku
      product {
        id title updatedAt
        featuredMedia { preview { image { url(transform: { maxWidth: 240, maxHeight: 240 }) } } }
      }
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
"""The query that the operation of the platform runs."""

MAX_ADDRESS_CHARACTERS = 2_000
"""The most characters in the address of a picture."""


class _NodeReference(Struct):
    id: str


class _Image(Struct):
    url: str


class _Preview(Struct):
    image: _Image | None = None


class _Media(Struct):
    preview: _Preview | None = None


class _ProductNode(Struct, rename="camel"):
    id: str
    updated_at: dt.datetime
    title: Any = None
    featured_media: _Media | None = None

    @property
    def picture(self) -> str | None:
        """The address of the product's picture, if it can be stored."""
        image = self.featured_media and self.featured_media.preview and self.featured_media.preview.image
        return image.url if image and len(image.url) <= MAX_ADDRESS_CHARACTERS else None


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
                        product.picture,
                    )
                case _LevelLine() as node if node.quantities:
                    levels[node.id] = ObservedLevel(
                        node.item.id, node.location.id, node.id, node.quantities[0].quantity, node.updated_at
                    )
                case _:
                    pass
        return cls([*variants.values()], [*levels.values()])


_DECODER = msgspec.json.Decoder(_VariantLine | _LevelLine, strict=False)


class _BulkOperation(Struct, rename="camel"):
    id: str
    status: str
    error_code: str | None = None
    url: str | None = None
    object_count: str = "0"


class _BulkError(Struct):
    message: str


class _RunPayload(Struct, rename="camel"):
    bulk_operation: _BulkOperation | None
    user_errors: list[_BulkError]


class _RunAnswer(Struct, rename="camel"):
    bulk_operation_run_query: _RunPayload


class _OperationAnswer(Struct, rename="camel"):
    bulk_operation: _BulkOperation | None


class _LocationsPageInfo(Struct, rename="camel"):
    has_next_page: bool
    end_cursor: str | None


class _LocationsPage(Struct, rename="camel"):
    nodes: list[LocationNode]
    page_info: _LocationsPageInfo


class _LocationsAnswer(Struct):
    locations: _LocationsPage


RUN_IMPORT = Query(
    "run_import",
    """
    mutation RunImport($query: String!) {
      bulkOperationRunQuery(query: $query) { bulkOperation { id status } userErrors { message } }
    }
    """,
    _RunAnswer,
)
READ_IMPORT = Query(
    "read_import",
    "query ReadImport($id: ID!) { bulkOperation(id: $id) { id status errorCode url objectCount } }",
    _OperationAnswer,
    cost=1,
)
READ_LOCATIONS = Query(
    "read_locations",
    """
    query ReadLocations($after: String) {
      locations(first: 50, after: $after, includeInactive: true, includeLegacy: true) {
        nodes { id name isActive isFulfillmentService }
        pageInfo { hasNextPage endCursor }
      }
    }
    """,
    _LocationsAnswer,
    cost=110,
)
