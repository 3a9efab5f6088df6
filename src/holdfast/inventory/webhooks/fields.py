"""Which fields of a webhook are stored: those that stock depends on. Everything else is dropped before it is stored.

So nothing that a customer is known by is ever in the database: no name, no address, no email, no note, no price.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Value: TypeAlias = str | int | bool | None


class Kept(Struct, omit_defaults=True):
    """Fields that are kept. Handlers judge their values."""


class Identified(Kept):
    id: Value = None
    admin_graphql_api_id: Value = None
    updated_at: Value = None


class _OrderLine(Kept):
    id: Value = None
    admin_graphql_api_id: Value = None
    variant_id: Value = None
    quantity: Value = None
    current_quantity: Value = None
    fulfillable_quantity: Value = None


class _RefundLine(Kept):
    id: Value = None
    line_item_id: Value = None
    quantity: Value = None
    restock_type: Value = None
    location_id: Value = None


class _Refund(Identified):
    order_id: Value = None
    created_at: Value = None
    refund_line_items: list[_RefundLine] = []


class _Order(Identified):
    name: Value = None
    created_at: Value = None
    cancelled_at: Value = None
    location_id: Value = None
    source_name: Value = None
    test: Value = None
    line_items: list[_OrderLine] = []
    refunds: list[_Refund] = []


class _EditedLine(Kept):
    id: Value = None
    delta: Value = None


class _EditedLines(Kept):
    additions: list[_EditedLine] = []
    removals: list[_EditedLine] = []


class _Edit(Kept):
    id: Value = None
    order_id: Value = None
    created_at: Value = None
    line_items: _EditedLines = msgspec.field(default_factory=_EditedLines)


class _OrderEdit(Kept):
    order_edit: _Edit = msgspec.field(default_factory=_Edit)


class _Level(Kept):
    inventory_item_id: Value = None
    location_id: Value = None
    available: Value = None
    updated_at: Value = None
    admin_graphql_api_id: Value = None


class _Item(Identified):
    sku: Value = None
    tracked: Value = None


class _Variant(Identified):
    title: Value = None
    sku: Value = None
    inventory_item_id: Value = None
    inventory_policy: Value = None


class _Product(Identified):
    title: Value = None
    status: Value = None
    variants: list[_Variant] = []


class _Location(Identified):
    name: Value = None
    active: Value = None


class _Bulk(Kept):
    admin_graphql_api_id: Value = None
    status: Value = None
    error_code: Value = None
    type: Value = None
    completed_at: Value = None


class _Shop(Identified):
    myshopify_domain: Value = None


class _Scopes(Identified):
    previous: list[str] = []
    current: list[str] = []


class _Redaction(Kept):
    shop_id: Value = None
    shop_domain: Value = None


KEPT: Mapping[str, type[Kept]] = {
    "orders/create": _Order,
    "orders/updated": _Order,
    "orders/cancelled": _Order,
    "orders/edited": _OrderEdit,
    "orders/delete": Identified,
    "refunds/create": _Refund,
    "inventory_levels/update": _Level,
    "inventory_levels/connect": _Level,
    "inventory_levels/disconnect": _Level,
    "inventory_items/update": _Item,
    "inventory_items/delete": Identified,
    "products/create": _Product,
    "products/update": _Product,
    "products/delete": Identified,
    "locations/create": _Location,
    "locations/update": _Location,
    "locations/activate": _Location,
    "locations/deactivate": _Location,
    "locations/delete": Identified,
    "bulk_operations/finish": _Bulk,
    "app/uninstalled": _Shop,
    "app/scopes_update": _Scopes,
    "shop/redact": _Redaction,
}
"""The fields of each topic."""


def kept(topic: str, body: bytes) -> bytes:
    """What is stored of a body, as JSON. Raises `msgspec.DecodeError` for a body that is not of this topic."""
    found: Any = msgspec.json.decode(body, type=KEPT[topic])
    return msgspec.json.encode(found)
