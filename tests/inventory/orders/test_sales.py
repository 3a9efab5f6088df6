"""Orders of the platform take their units from the pools, once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop
from tests.helpers.platform_webhooks import deliver, handle, install_app
from tests.inventory.orders.stories import PlatformOrder, deliver_orders, delivery_errors

UNKNOWN = "gid://shopify/ProductVariant/4711"


async def test_a_6_pack_that_is_sold_leaves_44_and_the_history_says_why(
    inventory: Inventory, golden_shop: Shop
) -> None:
    order = PlatformOrder((SIX_PACK, 1))

    await deliver_orders(inventory, order.payload(), shop=golden_shop, topic="orders/create")

    assert await golden_shop.on_hand(1) == 44
    assert (await golden_shop.read_storefront()).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}
    [entry] = await golden_shop.entries(source_ref=order.gid)
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("sale", -6, 44)
    assert (entry["actor"], entry["source"]) == ("platform", "webhook")
    assert entry["reason"] == f"Order #{order.id}: 1 of variant 1006 sold."
    assert entry["by_variant"] == {SIX_PACK: 6}


async def test_all_lines_of_an_order_are_one_entry_of_each_pool(inventory: Inventory, golden_shop: Shop) -> None:
    order = PlatformOrder((SIX_PACK, 1), (SINGLE, 2), (UNKNOWN, 5), (TWELVE_PACK, 1), (SINGLE, 1))
    order.add(None, 3)

    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    [entry] = await golden_shop.entries(source_ref=order.gid)
    assert (entry["delta"], entry["balance_after"]) == (-21, 29)
    assert UNKNOWN not in entry["reason"]


async def test_a_kit_takes_from_each_of_its_pools(inventory: Inventory, golden_shop: Shop) -> None:
    boxes = await golden_shop.create_pool(10, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    order = PlatformOrder((SIX_PACK, 2), (SINGLE, 1))

    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert (await golden_shop.on_hand(1), await golden_shop.on_hand(boxes["id"])) == (37, 8)
    assert {entry["pool_id"]: entry["delta"] for entry in await golden_shop.entries(source_ref=order.gid)} == {
        1: -13,
        boxes["id"]: -2,
    }


async def test_an_order_received_several_times_counts_once(inventory: Inventory, golden_shop: Shop) -> None:
    order = PlatformOrder((SIX_PACK, 1))
    for topic in ("orders/create", "orders/updated", "orders/create"):
        await deliver_orders(inventory, order.payload(), shop=golden_shop, topic=topic)
    order.later()
    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert len(await golden_shop.entries(source_ref=order.gid)) == 1


async def test_a_sale_that_has_happened_is_never_refused_and_leaves_a_deficit(
    inventory: Inventory, golden_shop: Shop
) -> None:
    hold = await golden_shop.call("hold_quantity", pool_id=1, quantity=10)

    await deliver_orders(inventory, PlatformOrder((TWELVE_PACK, 5)).payload(), shop=golden_shop)

    pool = await golden_shop.call("get_pool", pool_id=1)
    assert (pool["on_hand"], pool["held"], pool["available"]) == (-10, 10, 0)
    assert (await golden_shop.read_storefront()).json()["variants"] == {SINGLE: 0, SIX_PACK: 0, TWELVE_PACK: 0}
    await golden_shop.call("release_hold", hold_id=hold["hold"]["id"])
    assert (await golden_shop.refusal("adjust_pool_quantity", pool_id=1, delta=-1))["code"] == "not_enough_stock"


@pytest.mark.parametrize("put_away", ["pause_pool", "archive_pool"])
async def test_an_order_is_counted_while_its_pool_is_paused_or_archived(
    inventory: Inventory, golden_shop: Shop, put_away: str
) -> None:
    await golden_shop.call(put_away, pool_id=1)

    await deliver_orders(inventory, PlatformOrder((SIX_PACK, 1)).payload(), shop=golden_shop)

    assert await golden_shop.on_hand(1) == 44


async def test_orders_older_than_the_link_take_nothing_even_when_they_change(
    inventory: Inventory, golden_shop: Shop
) -> None:
    order = PlatformOrder((SIX_PACK, 2), placed_at=datetime.now(UTC) - timedelta(seconds=5))
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    [line] = order.lines
    order.later(10)
    order.back(line, 1)
    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert await golden_shop.on_hand(1) == 50
    assert await inventory.sql("select id from orders") == []


async def test_an_order_takes_what_its_variants_took_when_it_was_placed(
    inventory: Inventory, golden_shop: Shop
) -> None:
    """Also when it is told of a week later."""
    await age_links(inventory, days=10)
    early, between, late = (
        PlatformOrder((SIX_PACK, 1), placed_at=datetime.now(UTC) - timedelta(days=days)) for days in (8, 6, 3)
    )
    await golden_shop.call("update_member", pool_id=1, variant_gid=SIX_PACK, units_per_sale=5)
    await inventory.sql(
        """
        update links set until = now() - interval '7 days' where until < 'infinity';
        update links set since = now() - interval '7 days' where units_per_sale = 5
        """
    )
    await golden_shop.call("unlink_variants", pool_id=1, variant_gids=[SIX_PACK])
    await inventory.sql("update links set until = now() - interval '4 days' where units_per_sale = 5")

    for order in (late, between, early):
        await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert [entry["delta"] for entry in await golden_shop.entries(kinds=["sale"])] == [-6, -5]


async def test_returned_units_are_those_taken_even_if_the_variant_was_unlinked_since(
    inventory: Inventory, golden_shop: Shop
) -> None:
    order = PlatformOrder((SIX_PACK, 2))
    [line] = order.lines
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    await golden_shop.call("unlink_variants", pool_id=1, variant_gids=[SIX_PACK])
    order.back(line, 1)
    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert await golden_shop.on_hand(1) == 44


async def test_sales_at_a_till_and_from_any_location_take_from_the_same_pool(
    inventory: Inventory, golden_shop: Shop
) -> None:
    for location in (None, 11, 12):
        order = PlatformOrder((SIX_PACK, 1), location_id=location, source_name="pos" if location else "web")
        await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert await golden_shop.on_hand(1) == 50 - 18


async def test_orders_of_another_shop_take_nothing_from_this_one(inventory: Inventory, golden_shop: Shop) -> None:
    other = await install_app(inventory)
    order = PlatformOrder((SIX_PACK, 1))
    await deliver_orders(inventory, order.payload(), shop=other)

    assert await golden_shop.on_hand(1) == 50
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    assert await golden_shop.on_hand(1) == 44


async def test_a_reason_with_many_lines_is_cut(inventory: Inventory, golden_shop: Shop) -> None:
    gids = [f"gid://shopify/ProductVariant/{number}" for number in range(5001, 5041)]
    await golden_shop.create_pool(
        50, members=[{"variant_gid": gid, "units_per_sale": 1, "title": "Jar"} for gid in gids]
    )
    order = PlatformOrder(*[(gid, 1) for gid in gids])
    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    [entry] = await golden_shop.entries(source_ref=order.gid)
    assert len(entry["reason"]) <= 500
    assert entry["reason"].endswith(" more.")
    assert entry["delta"] == -40


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": None},
        {"id": "many"},
        {"id": -1},
        {"updated_at": None},
        {"updated_at": "yesterday"},
        {"created_at": "2026-11-22T12:00:00"},
        {"line_items": [{"id": 1, "quantity": -1}]},
        {"line_items": [{"id": 1, "quantity": 10**9 + 1}]},
        {"line_items": [{"id": 1, "quantity": 1.5}]},
        {"line_items": [{"id": True, "quantity": 1, "variant_id": "x"}]},
    ],
    ids=str,
)
async def test_an_order_with_an_invalid_id_changes_nothing_and_is_parked(
    inventory: Inventory, golden_shop: Shop, wrong: dict[str, Any]
) -> None:
    answer = await deliver(golden_shop, "orders/create", PlatformOrder((SIX_PACK, 1)).payload(**wrong))
    await handle(inventory)

    assert await golden_shop.on_hand(1) == 50
    assert answer.status_code == 400 or len(await delivery_errors(inventory)) == 1


async def test_numbers_of_an_order_may_be_texts(inventory: Inventory, golden_shop: Shop) -> None:
    payload = PlatformOrder((SIX_PACK, 1)).payload()
    payload["id"] = str(payload["id"])
    await deliver_orders(inventory, payload, shop=golden_shop)

    assert await golden_shop.on_hand(1) == 44


async def age_links(inventory: Inventory, days: int) -> None:
    """Let all links be this many days old."""
    await inventory.sql("update links set since = since - make_interval(days => %(days)s)", days=days)
