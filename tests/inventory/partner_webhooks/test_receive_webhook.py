"""A webhook that the platform signed is stored once, without data of customers.

All tests share a database, and each has a shop of its own.
"""

import asyncio
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from holdfast.inventory.partner_webhooks.payloads import PAYLOADS, stored_payload
from holdfast.inventory.partner_webhooks.routes import MAX_BODY_BYTES, routes
from holdfast.inventory.service import HANDLERS
from holdfast.kit.operations.rate_limits import Limits
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_webhooks import deliver, install_app
from tests.helpers.serving import application

ORDER: dict[str, Any] = {
    "id": 820982911946154508,
    "admin_graphql_api_id": "gid://shopify/Order/820982911946154508",
    "name": "#1001",
    "email": "jon@example.com",
    "note": "Leave it with Jon",
    "updated_at": "2026-11-22T12:00:00-05:00",
    "cancelled_at": None,
    "customer": {"first_name": "Jon", "email": "jon@example.com"},
    "billing_address": {"name": "Jon", "phone": "555-625-1199"},
    "line_items": [
        {
            "id": 1,
            "variant_id": 1006,
            "quantity": 2,
            "current_quantity": 2,
            "price": "19.00",
            "properties": [{"name": "Engraving", "value": "For Jon"}],
        }
    ],
    "refunds": [{"id": 7, "note": "Jon", "refund_line_items": [{"line_item_id": 1, "quantity": 1, "location_id": 5}]}],
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def inventory(shared_inventory: Inventory) -> Inventory:
    return shared_inventory


@pytest_asyncio.fixture(loop_scope="module")
async def shop(inventory: Inventory) -> Shop:
    return await install_app(inventory)


@pytest_asyncio.fixture(loop_scope="module")
async def taking_orders(inventory: Inventory, shop: Shop) -> Shop:
    """The shop, at a door that takes every topic, whether something handles it or not."""
    door = application(*routes(inventory.database, Limits("memory://", {}), PAYLOADS))
    transport = httpx2.ASGITransport(app=door)
    http = httpx2.AsyncClient(transport=transport, base_url="http://door.test")
    return Shop(http, shop.settings, shop.id, shop.domain, shop.key)


async def stored_webhooks(inventory: Inventory, shop: Shop) -> list[tuple[Any, ...]]:
    return await inventory.sql(
        "select topic, webhook_id, event_id, payload from webhooks where shop_id = %(id)s order by id", id=shop.id
    )


async def test_a_delivery_is_stored_before_it_is_answered(inventory: Inventory, shop: Shop) -> None:
    body = {"id": 1, "myshopify_domain": shop.domain, "email": "owner@example.com"}

    answer = await deliver(shop, "app/uninstalled", body, webhook_id="w1", event_id="e1")

    assert (answer.status_code, answer.content) == (200, b"")
    [(topic, webhook_id, event_id, payload)] = await stored_webhooks(inventory, shop)
    assert (topic, webhook_id, event_id) == ("app/uninstalled", "w1", "e1")
    assert payload == b'{"id":1,"myshopify_domain":"%s"}' % shop.domain.encode()


async def test_a_stored_order_has_no_data_of_customers(inventory: Inventory, taking_orders: Shop) -> None:
    assert (await deliver(taking_orders, "orders/updated", ORDER)).status_code == 200

    [(_, _, _, payload)] = await stored_webhooks(inventory, taking_orders)
    for secret in (b"Jon", b"jon@", b"555", b"19.00", b"Leave"):
        assert secret not in payload
    for needed in (b"820982911946154508", b'"variant_id":1006', b'"current_quantity":2', b'"line_item_id":1', b"#1001"):
        assert needed in payload


@pytest.mark.parametrize("claimed", ["", "AAAA", "A" * 44, "\xe9" * 44])
async def test_a_webhook_with_a_wrong_signature_is_refused(inventory: Inventory, shop: Shop, claimed: str) -> None:
    answer = await deliver(shop, "app/uninstalled", {}, hmac_sha256=claimed)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_signature")
    assert await stored_webhooks(inventory, shop) == []


async def test_a_body_that_was_changed_on_the_way_is_refused(inventory: Inventory, shop: Shop) -> None:
    answer = await deliver(shop, "app/uninstalled", {}, secret=b"another secret")

    assert answer.status_code == 401
    assert await stored_webhooks(inventory, shop) == []


async def test_a_delivery_that_comes_again_is_stored_once(inventory: Inventory, shop: Shop) -> None:
    answers = await asyncio.gather(
        *(deliver(shop, "app/uninstalled", {"id": number % 2}, webhook_id="same") for number in range(20))
    )
    await inventory.sql(
        "update webhooks set received_at = now() - interval '7 days', handled_at = now(), due_at = null, payload = null"
        f" where shop_id = {shop.id}"
    )
    again = await deliver(shop, "app/uninstalled", {"id": 1}, webhook_id="same")

    assert {answer.status_code for answer in (*answers, again)} == {200}
    assert len(await stored_webhooks(inventory, shop)) == 1


async def test_two_shops_may_have_deliveries_with_the_same_id(inventory: Inventory, shop: Shop) -> None:
    other = await install_app(inventory)
    for installed_shop in (shop, other):
        await deliver(installed_shop, "app/uninstalled", {}, webhook_id="same")

    assert [len(await stored_webhooks(inventory, installed_shop)) for installed_shop in (shop, other)] == [1, 1]


@pytest.mark.parametrize("whose", ["unknown", "without the app", "uninstalled"])
async def test_a_shop_that_does_not_have_the_app_is_answered_and_nothing_is_stored(
    inventory: Inventory, taking_orders: Shop, whose: str
) -> None:
    shop = await inventory.create_shop()
    if whose == "uninstalled":
        await install_app(inventory, shop)
        await inventory.sql(f"update installs set uninstalled_at = now() where shop_id = {shop.id}")
    domain = "nobody.myshopify.com" if whose == "unknown" else shop.domain

    answer = await deliver(taking_orders, "orders/updated", ORDER, shop_domain=domain)

    assert (answer.status_code, await stored_webhooks(inventory, shop)) == (200, [])


async def test_a_shop_that_uninstalled_the_app_can_still_be_deleted(inventory: Inventory, shop: Shop) -> None:
    await inventory.sql(f"update installs set uninstalled_at = now() where shop_id = {shop.id}")

    await deliver(shop, "shop/redact", {"shop_domain": shop.domain, "shop_id": 1})

    assert [topic for topic, *_ in await stored_webhooks(inventory, shop)] == ["shop/redact"]


@pytest.mark.parametrize("topic", ["customers/data_request", "customers/redact", "themes/publish", "", "x" * 300])
async def test_an_unused_topic_is_answered_with_200_and_not_stored(
    inventory: Inventory, shop: Shop, topic: str
) -> None:
    answer = await deliver(shop, topic, {"customer": {"id": 1, "email": "jon@example.com"}})

    assert (answer.status_code, await stored_webhooks(inventory, shop)) == (200, [])


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"myshopify_domain": {"of": "something else"}}', {}),
        (b"{", {}),
        (b"{\xff", {}),
        (b'{"id": "\xff"}', {}),
        (b'{"id": ' + b"[" * 2_000, {}),
        (b'{"x": ' + b"[" * 2_000, {}),
        (b"{}", {"shop_domain": "evil.example.com"}),
        (b"{}", {"shop_domain": ""}),
        (b"{}", {"webhook_id": ""}),
        (b"{}", {"webhook_id": "x" * 101}),
        (b"{}", {"webhook_id": "\xe9"}),
    ],
)
async def test_a_delivery_that_cannot_be_read_is_refused_so_that_it_comes_again(
    inventory: Inventory, shop: Shop, body: bytes, headers: Any
) -> None:
    answer = await deliver(shop, "app/uninstalled", body, **headers)

    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert await stored_webhooks(inventory, shop) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'\n{"id": 1}', b' {"id": 1}', b'"{"', b"a={}"], ids=str)
async def test_a_signed_body_that_does_not_begin_as_an_object_is_refused(
    inventory: Inventory, shop: Shop, body: bytes
) -> None:
    answer = await deliver(shop, "app/uninstalled", body)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_signature")
    assert await stored_webhooks(inventory, shop) == []


@pytest.mark.parametrize("triggered_at", ["", "yesterday", "2026-11-22T12:00:00", "0"])
async def test_a_delivery_with_an_unreadable_time_is_stored_without_one(
    inventory: Inventory, shop: Shop, triggered_at: str
) -> None:
    assert (await deliver(shop, "app/uninstalled", {}, triggered_at=triggered_at)).status_code == 200

    assert await inventory.sql(f"select triggered_at from webhooks where shop_id = {shop.id}") == [(None,)]


async def test_a_body_of_five_million_bytes_is_stored_and_one_beyond_the_limit_is_not(
    inventory: Inventory, taking_orders: Shop
) -> None:
    variants = [{"id": number, "title": "Jar", "body_html": "x" * 2000} for number in range(2_500)]
    large = {"id": 1, "title": "Honey", "variants": variants}

    accepted = await deliver(taking_orders, "products/update", large)
    refusal = await deliver(taking_orders, "products/update", b"x" * (MAX_BODY_BYTES + 1))

    assert (accepted.status_code, refusal.status_code) == (200, 413)
    [(_, _, _, payload)] = await stored_webhooks(inventory, taking_orders)
    assert len(payload) < 100_000


async def test_a_get_of_the_webhook_address_is_answered_with_405(shop: Shop) -> None:
    assert (await shop.http.get("/webhooks/shopify")).status_code == 405


async def test_every_topic_that_is_handled_has_a_payload() -> None:
    assert HANDLERS.keys() == PAYLOADS.keys()


@pytest.mark.parametrize("topic", PAYLOADS)
async def test_the_stored_fields_of_a_topic_have_no_text_of_a_customer(topic: str) -> None:
    """Whatever a body has: names of fields that customers are known by are not among those that are kept."""
    personal = ("email", "phone", "address", "customer", "note", "first_name", "last_name", "token", "ip")
    body = dict.fromkeys(personal, "secret")

    assert b"secret" not in stored_payload(topic, msgspec.json.encode(body))
