"""Texts that are only shown may be anything: no webhook is refused because of one, and stock is counted."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.inventory.catalog.import_lines import ImportLines, LocationNode
from holdfast.inventory.orders import model
from holdfast.inventory.partner_webhooks.model import Delivery
from holdfast.inventory.partner_webhooks.payloads import PAYLOADS, OrderPayload, Payload, read_payload, stored_payload
from tests.helpers.inventory_service import SIX_PACK, Inventory, Shop
from tests.helpers.platform_webhooks import deliver, handle, install_app
from tests.inventory.orders.stories import PlatformOrder, delivery_errors

NOW = "2026-11-27T10:00:00-05:00"
LINE = {"id": 5, "variant_id": 6, "quantity": 3, "current_quantity": 2}
REFUND = {"id": 7, "refund_line_items": [{"line_item_id": 5, "quantity": 1, "restock_type": "return"}]}
ORDER = {"id": 1, "created_at": NOW, "updated_at": NOW, "line_items": [LINE], "refunds": [REFUND]}
VARIANT = {"id": 3, "inventory_item_id": 4}
BODIES: Mapping[type[Payload], dict[str, Any]] = {
    kind: body
    for topic, body in {
        "orders/create": ORDER,
        "orders/edited": {"order_edit": {"order_id": 1, "created_at": NOW}},
        "refunds/create": {**REFUND, "order_id": 1, "created_at": NOW},
        "inventory_levels/update": {
            "inventory_item_id": 4,
            "location_id": 2,
            "available": 50,
            "updated_at": NOW,
            "admin_graphql_api_id": "gid://shopify/InventoryLevel/1?inventory_item_id=4",
        },
        "inventory_items/update": {"id": 4, "tracked": True},
        "products/update": {"id": 2, "updated_at": NOW, "variants": [VARIANT]},
        "products/delete": {"id": 2},
        "locations/update": {"id": 2, "active": True, "legacy": False, "updated_at": NOW},
        "app/scopes_update": {},
        "app/uninstalled": {"myshopify_domain": "ada.myshopify.com"},
        "shop/redact": {"shop_domain": "ada.myshopify.com"},
    }.items()
    for kind in [PAYLOADS[topic]]
}
SHOWN = (
    "name title sku vendor handle email note status source_name customer admin_graphql_api_id cancelled_at test"
    " previous current shop_id created_by properties"
).split()
"""Fields of which none decides about stock, of any object of the platform."""

texts = st.text(st.characters(), max_size=30) | st.integers(1, 400).map("é".__mul__)
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3),
    max_leaves=3,
)


def with_odd(data: st.DataObject, value: Any) -> Any:
    """A body with odd texts in each object, and whole numbers as floats."""
    if isinstance(value, list):
        return [with_odd(data, item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        members = {name: with_odd(data, member) for name, member in cast(dict[str, Any], value).items()}
        odd_members = data.draw(st.dictionaries(st.sampled_from(SHOWN), odd, max_size=3))
        return {**odd_members, **members}
    if isinstance(value, int) and not isinstance(value, bool):
        return data.draw(st.sampled_from([value, float(value)]))
    return value


def delivery(payload: bytes) -> Delivery:
    return Delivery(1, "", "w", None, None, payload, datetime.now(UTC))


def without_texts(payload: Any) -> Any:
    """What a payload says without texts that are shown."""
    if isinstance(payload, list):
        return [without_texts(item) for item in cast(list[Any], payload)]
    if isinstance(payload, dict):
        return {
            name: without_texts(value) for name, value in cast(dict[str, Any], payload).items() if name not in SHOWN
        }
    return payload


def test_every_topic_has_a_body_in_this_test() -> None:
    assert BODIES.keys() == {*PAYLOADS.values()}


@pytest.mark.parametrize("topic", PAYLOADS)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_odd_texts_in_a_webhook_do_not_change_the_fields_that_decide(topic: str, data: st.DataObject) -> None:
    kind, body = PAYLOADS[topic], BODIES[PAYLOADS[topic]]
    plain = read_payload(delivery(stored_payload(topic, json.dumps(body).encode())), kind)
    stored = stored_payload(topic, json.dumps(with_odd(data, body)).encode())
    odd_one = read_payload(delivery(stored), kind)

    assert without_texts(msgspec.to_builtins(odd_one)) == without_texts(msgspec.to_builtins(plain))
    for text in _texts(msgspec.to_builtins(odd_one)):
        assert "\0" not in text
        assert text == text.encode().decode()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members: list[Any] = []
    if isinstance(value, list):
        members = cast(list[Any], value)
    elif isinstance(value, dict):
        members = [*cast(dict[str, Any], value).values()]
    return [text for member in members for text in _texts(member)]


@pytest.mark.parametrize("topic", ["orders/create", "orders/updated", "orders/cancelled"])
@pytest.mark.parametrize(
    "fields",
    [
        {"name": "#" * 150},
        {"name": "\0"},
        {"name": "#1001\0\ud800"},
        {"name": {"of": 1}},
        {"name": None, "refunds": None, "note": "\udfff", "email": 7},
        {"source_name": ["web"], "test": {"a": 1}, "cancelled_at": 1.5},
    ],
    ids=str,
)
async def test_an_order_whose_texts_are_odd_is_counted(
    inventory: Inventory, topic: str, fields: dict[str, Any]
) -> None:
    shop = await install_app(inventory)
    await shop.create_golden_pool()
    order = PlatformOrder((SIX_PACK, 1))
    await tell(shop, topic, {**order.payload(), **fields})
    await handle(inventory)

    assert await delivery_errors(inventory) == []
    assert await shop.on_hand(1) == 44


async def test_quantities_of_an_order_may_be_floats(inventory: Inventory) -> None:
    shop = await install_app(inventory)
    await shop.create_golden_pool()
    payload = PlatformOrder((SIX_PACK, 1)).payload()
    [line] = payload["line_items"]
    line |= {"quantity": 1.0, "current_quantity": 1.0}
    await tell(shop, "orders/create", payload)
    await handle(inventory)

    assert (await delivery_errors(inventory), await shop.on_hand(1)) == ([], 44)


@pytest.mark.parametrize("field", ["quantity", "current_quantity", "id"])
@pytest.mark.parametrize("value", [1.5, "many", -1])
async def test_an_order_whose_units_are_odd_is_stored_and_parked(inventory: Inventory, field: str, value: Any) -> None:
    shop = await install_app(inventory)
    await shop.create_golden_pool()
    payload = PlatformOrder((SIX_PACK, 1)).payload()
    payload["line_items"][0][field] = value
    await tell(shop, "orders/create", payload)
    await handle(inventory)

    [error] = await delivery_errors(inventory)
    assert "It cannot be read" in error
    assert await shop.on_hand(1) == 50


async def test_products_and_locations_whose_texts_are_odd_are_known(inventory: Inventory) -> None:
    shop = await install_app(inventory)
    for number, text in enumerate(["x" * 1_000, "\0", "\ud800 jar", None, 5, ["a"], {"a": "b"}], 1):
        variant = {"id": number, "inventory_item_id": number, "title": text, "sku": text, "barcode": text}
        body = {"id": number, "title": text, "vendor": text, "handle": text, "variants": [variant]}
        await tell(shop, "products/create", body)
        await tell(shop, "locations/create", {"id": number, "name": text, "active": True, "legacy": False})
    await handle(inventory)

    assert await delivery_errors(inventory) == []
    counts = "select (select count(*) from catalog_variants), (select count(*) from locations)"
    assert await inventory.sql(counts) == [(7, 7)]


@given(odd, odd, odd)
def test_an_import_reads_lines_whose_texts_are_odd(title: Any, sku: Any, name: Any) -> None:
    line = {
        "__typename": "ProductVariant",
        "id": "gid://shopify/ProductVariant/1",
        "title": title,
        "sku": sku,
        "product": {"id": "gid://shopify/Product/2", "title": name, "updatedAt": NOW},
        "inventoryItem": {"id": "gid://shopify/InventoryItem/3", "tracked": True},
    }
    location = {"id": "gid://shopify/Location/4", "name": None, "isActive": True, "isFulfillmentService": False}
    [variant] = ImportLines.of([json.dumps(line).encode()]).variants

    assert (variant.item_gid, variant.tracked) == ("gid://shopify/InventoryItem/3", True)
    assert "\0" not in variant.title + variant.product_title + (variant.sku or "")
    assert msgspec.convert(location, LocationNode).location.name == ""


def test_an_order_that_says_no_name_has_none() -> None:
    order = model.from_payload(msgspec.convert({**ORDER, "name": ""}, OrderPayload))

    assert order.name == ""


async def tell(shop: Shop, topic: str, body: Any) -> None:
    assert (await deliver(shop, topic, json.dumps(body).encode())).status_code == 200
