"""The payloads of webhooks: the fields that are stored of each topic, with the types that its handler reads.

All other fields are dropped before a webhook is stored, and the platform is asked not to send them. So no personal
data of a customer is ever in the database: no name, no address, no email, no note, no price.

Only what decides about stock may refuse a webhook. Texts for display (`Display`) are cut and cleaned, null is the same
as no value, a whole number may be written as `1.0`, and what no handler reads may be anything. A number, a name or a
moment that decides and is odd is stored, and its handler refuses it: what the service cannot read is not lost. An
object or a list in its place is not stored, because it may have data of customers.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.inspect import DateTimeType, Field, ListType, Metadata, StructType, UnionType, type_info

from holdfast.inventory.partner_webhooks.model import Delivery
from holdfast.inventory.shopify.platform_client import display_text, storable_json

MAX_UNITS = 10**9
"""The most units of a line. A larger number is no order, and would exceed what a pool can lack."""

Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=MAX_UNITS)]
Moment = Annotated[datetime, Meta(tz=True)]

Value: TypeAlias = Annotated[str | int | bool | None, Meta(extra={"use": "none"})]
"""The value of a field that no handler reads."""

Display: TypeAlias = Annotated[str, Meta(extra={"use": "display"})]
"""A text that is shown to people, of at most 300 characters; "": the platform does not say it."""


class Payload(Struct):
    """The fields of an object that are stored."""


P = TypeVar("P", bound=Payload)


class DeletedPayload(Payload):
    """The body about any object that was deleted."""

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
    name: Display = ""
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
    title: Display = ""
    sku: Display = ""
    updated_at: Moment | None = None


class ProductPayload(Payload):
    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Moment | None = None
    title: Display = ""
    status: Value = None
    variants: list[VariantOfProduct] = []


class LocationPayload(Payload):
    id: Number
    admin_graphql_api_id: Value = None
    updated_at: Moment | None = None
    name: Display = ""
    active: bool = True
    legacy: bool | None = None


class ScopesPayload(Payload):
    """Not read: the handler reads the scopes from the platform, in whatever order webhooks come."""

    id: Value = None
    admin_graphql_api_id: Value = None
    updated_at: Value = None
    previous: Value = None
    current: Value = None


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
    """The names of the stored fields of a topic."""
    return [*PAYLOADS[topic].__struct_fields__]


def read_payload(delivery: Delivery, kind: type[P]) -> P:
    """The payload of a delivery. Raises `msgspec.ValidationError` if it is not one of this kind."""
    body = msgspec.json.decode(storable_json(delivery.payload))
    try:
        fields = _stored_fields(_INFO[kind], body)
    except ValueError as error:
        raise msgspec.ValidationError(str(error)) from error
    return msgspec.convert(fields, kind, strict=False)


def stored_payload(topic: str, body: bytes) -> bytes:
    """The stored fields of a body, as JSON.

    Raises `ValueError` or `RecursionError` for a body that is not of this topic.
    """
    kind = PAYLOADS[topic]
    fields = msgspec.json.decode(storable_json(body), type=_BODIES[kind])
    return msgspec.json.encode(_stored_fields(_INFO[kind], msgspec.to_builtins(fields)))


def _stored_fields(payload: StructType, body: Any) -> dict[str, Any]:
    """The fields of a payload that an object has. Raises `ValueError`."""
    if not isinstance(body, dict):
        raise ValueError(f"Expected an object for {payload.cls.__name__}.")
    members = cast(dict[str, Any], body)
    fields: dict[str, Any] = {}
    for field in payload.fields:
        value = _stored_value(field, members.get(field.name))
        if value is not None:
            fields[field.name] = value
    return fields


def _stored_value(field: Field, value: Any) -> Any:
    """The value of a field; None if it has none. Raises `ValueError`."""
    if value is None:
        return None
    match _inner_type(field):
        case "none":
            return value if isinstance(value, str | int) else None
        case "display":
            return display_text(value) or None
        case StructType() as inner:
            return _stored_fields(inner, value)
        case ListType(item_type=StructType() as item):
            if not isinstance(value, list):
                raise ValueError(f"Expected a list for {field.name}.")
            return [_stored_fields(item, member) for member in cast(list[Any], value) if member is not None]
        case DateTimeType() if not field.required:
            return value if _is_moment(value) else None
        case _:
            if isinstance(value, dict | list):
                raise ValueError(f"Expected no object and no list for {field.name}.")
            return int(value) if isinstance(value, float) and value.is_integer() else value


def _inner_type(field: Field) -> Any:
    """How a field is used, if it does not decide about stock; else the type of its values other than null."""
    kind = field.type
    while isinstance(kind, Metadata | UnionType):
        if isinstance(kind, UnionType):
            kind = kind.types[0]
        elif use := cast(dict[str, str], kind.extra or {}).get("use"):
            return use
        else:
            kind = kind.type
    return kind


def _is_moment(value: Any) -> bool:
    try:
        msgspec.convert(value, Moment)
    except msgspec.ValidationError:
        return False
    return True


def _info_of(payload: type[Payload]) -> StructType:
    info = type_info(payload)
    assert isinstance(info, StructType)
    return info


_INFO: Mapping[type[Payload], StructType] = {payload: _info_of(payload) for payload in PAYLOADS.values()}

_BODIES: Mapping[type[Payload], type[Struct]] = {
    payload: msgspec.defstruct(payload.__name__, [(field, Any, None) for field in payload.__struct_fields__])
    for payload in PAYLOADS.values()
}
"""Structs with the fields of each payload, of any value: all other fields of a body are skipped."""
