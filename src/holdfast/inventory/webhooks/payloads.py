"""The payloads of webhooks: the fields that are stored of each topic, with the types that its handler reads.

All other fields are dropped before a webhook is stored, and the platform is asked not to send them. So no personal data
of a customer is ever in the database: no name, no address, no email, no note, no price. A delivery is stored whatever
the values of its fields are, and its handler checks their types: what the service cannot read is not lost.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.inspect import ListType, StructType, type_info

from holdfast.inventory.webhooks.model import Delivery

MAX_UNITS = 10**9
"""The most units of a line. A larger number is no order, and would exceed what a pool can lack."""

Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=MAX_UNITS)]
Moment = Annotated[datetime, Meta(tz=True)]

Value: TypeAlias = str | int | bool | None
"""Of a field that no handler reads."""


class Payload(Struct):
    """The fields of an object that are stored."""


P = TypeVar("P", bound=Payload)


class DeletedPayload(Payload):
    """Of any object that was deleted."""

    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Value = None


class OrderLine(Payload):
    id: Number
    quantity: Count
    current_quantity: Count | None = None
    variant_id: Number | None = None


class RefundedLine(Payload):
    """A line of a refund: units that are no longer paid for, and maybe came back into stock."""

    line_item_id: Number
    quantity: Count
    restock_type: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the units did not come back into stock."""
        return (self.restock_type or "").lower() == "no_restock"


class RefundOfOrder(Payload):
    id: Number
    refund_line_items: list[RefundedLine] = []


class OrderPayload(Payload):
    id: Number
    created_at: Moment
    updated_at: Moment
    admin_graphql_api_id: Value = None
    name: Annotated[str, Meta(max_length=100)] | None = None
    cancelled_at: Value = None
    location_id: Value = None
    source_name: Value = None
    test: Value = None
    line_items: list[OrderLine] = []
    refunds: list[RefundOfOrder] = []


class OrderEdit(Payload):
    order_id: Number
    created_at: Moment


class OrderEditPayload(Payload):
    order_edit: OrderEdit


class RefundPayload(Payload):
    id: Number
    order_id: Number
    created_at: Moment
    admin_graphql_api_id: Value = None
    updated_at: Value = None
    refund_line_items: list[RefundedLine] = []


class LevelPayload(Payload):
    inventory_item_id: Number
    location_id: Number
    available: int | None = None
    updated_at: Moment | None = None
    admin_graphql_api_id: str | None = None


class ItemPayload(Payload):
    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Value = None
    sku: Value = None
    tracked: bool = True


class VariantOfProduct(Payload):
    id: Number
    inventory_item_id: Number
    title: str | None = None
    sku: str | None = None
    updated_at: Moment | None = None


class ProductPayload(Payload):
    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Moment | None = None
    title: str = ""
    status: Value = None
    variants: list[VariantOfProduct] = []


class LocationPayload(Payload):
    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Moment | None = None
    name: str = ""
    active: bool = True
    legacy: bool | None = None


class ScopesPayload(Payload):
    """Not read: the handler reads the scopes from the platform, in whatever order webhooks come."""

    id: Value = None
    admin_graphql_api_id: Value = None
    updated_at: Value = None
    previous: list[str] = []
    current: list[str] = []


class UninstallPayload(Payload):
    id: Value = None
    admin_graphql_api_id: Value = None
    updated_at: Value = None
    myshopify_domain: str | None = None


class RedactionPayload(Payload):
    shop_id: Value = None
    shop_domain: str | None = None


PAYLOADS: Mapping[str, type[Payload]] = {
    "orders/create": OrderPayload,
    "orders/updated": OrderPayload,
    "orders/cancelled": OrderPayload,
    "orders/edited": OrderEditPayload,
    "refunds/create": RefundPayload,
    "inventory_levels/update": LevelPayload,
    "inventory_levels/connect": LevelPayload,
    "inventory_levels/disconnect": LevelPayload,
    "inventory_items/update": ItemPayload,
    "inventory_items/delete": DeletedPayload,
    "products/create": ProductPayload,
    "products/update": ProductPayload,
    "products/delete": DeletedPayload,
    "locations/create": LocationPayload,
    "locations/update": LocationPayload,
    "locations/activate": LocationPayload,
    "locations/deactivate": LocationPayload,
    "locations/delete": DeletedPayload,
    "app/uninstalled": UninstallPayload,
    "app/scopes_update": ScopesPayload,
    "shop/redact": RedactionPayload,
}
"""The payload of each topic."""


def fields_of(topic: str) -> list[str]:
    """Return the names of the stored fields of a topic."""
    return [*PAYLOADS[topic].__struct_fields__]


def read_payload(delivery: Delivery, kind: type[P]) -> P:
    """Return the payload of a delivery. Raises `msgspec.ValidationError` if it is not one of this kind."""
    return msgspec.json.decode(delivery.payload, type=kind, strict=False)


def stored_payload(topic: str, body: bytes) -> bytes:
    """Return the stored fields of a body, as JSON.

    Raises `ValueError` or `RecursionError` for a body that is not of this topic.
    """
    fields: Any = msgspec.json.decode(body, type=_STORED[topic])
    return msgspec.json.encode(fields)


def _with_any_values(payload: StructType) -> type[Struct]:
    """Return a struct with the fields of a payload, each of which may be missing and have any value."""
    fields: list[tuple[str, Any, Any]] = []
    for field in payload.fields:
        match field.type:
            case ListType(item_type=StructType() as item):
                fields.append((field.name, list[_with_any_values(item)], msgspec.field(default_factory=list[Any])))
            case ListType():
                fields.append((field.name, list[str], msgspec.field(default_factory=list[Any])))
            case StructType() as inner:
                kind = _with_any_values(inner)
                fields.append((field.name, kind, msgspec.field(default_factory=kind)))
            case _:
                fields.append((field.name, Value, None))
    return msgspec.defstruct(payload.cls.__name__, fields, omit_defaults=True)


def _stored_kind(payload: type[Payload]) -> type[Struct]:
    info = type_info(payload)
    assert isinstance(info, StructType)
    return _with_any_values(info)


_STORED = {topic: _stored_kind(payload) for topic, payload in PAYLOADS.items()}
