"""Which pools run low: at or below their `low_stock_at`, and with `days_of_cover` those that last no longer."""

from typing import Any

import pytest

from tests.helpers.inventory_service import Inventory, Shop

pytestmark = pytest.mark.usefixtures("own_inventory")  # Its pools have the ids 1, 2 and so on; it changes the schema.


async def low_pools(shop: Shop, **arguments: Any) -> list[str]:
    return [pool["name"] for pool in (await shop.call("list_low_stock", **arguments))["pools"]]


@pytest.fixture
async def pools_at_thresholds(shop: Shop) -> Shop:
    """Full, at its threshold, below it by what is held, without a threshold, paused, and archived."""
    await shop.create_pool(50, name="Full", low_stock_at=12)
    await shop.create_pool(12, name="At", low_stock_at=12)
    await shop.create_pool(20, name="Held", low_stock_at=12)
    await shop.create_pool(0, name="Careless")
    await shop.create_pool(0, name="Paused", low_stock_at=12)
    await shop.create_pool(0, name="Archived", low_stock_at=12)
    await shop.call("hold_quantity", pool_id=3, quantity=9)
    await shop.call("pause_pool", pool_id=5)
    await shop.call("archive_pool", pool_id=6)
    return shop


async def test_active_pools_at_or_below_their_threshold_are_listed(pools_at_thresholds: Shop) -> None:
    assert await low_pools(pools_at_thresholds) == ["At", "Held"]


async def test_a_pool_that_is_filled_up_is_no_longer_listed(pools_at_thresholds: Shop) -> None:
    await pools_at_thresholds.call("adjust_pool_quantity", pool_id=2, delta=1)

    assert await low_pools(pools_at_thresholds) == ["Held"]


async def test_a_given_threshold_replaces_those_of_the_pools(pools_at_thresholds: Shop) -> None:
    assert await low_pools(pools_at_thresholds, threshold=11) == ["Held", "Careless"]
    assert await low_pools(pools_at_thresholds, threshold=50) == ["Full", "At", "Held", "Careless"]
    assert await low_pools(pools_at_thresholds, threshold=0) == ["Careless"]


async def test_a_pool_whose_stock_does_not_last_the_given_days_is_listed(shop: Shop) -> None:
    pool = await shop.create_pool(84, name="Quick")
    await shop.create_pool(84, name="Slow")
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-56)

    # 56 in 28 days are 2 a day, and 28 are left.
    assert await low_pools(shop, days_of_cover=14) == ["Quick"]
    assert await low_pools(shop, days_of_cover=13) == []
    (listed,) = (await shop.call("list_low_stock", days_of_cover=14))["pools"]
    assert (listed["available"], listed["taken_per_day"], listed["days_of_cover"]) == (28, 2.0, 14.0)


async def test_the_pace_is_that_of_the_last_28_days(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(84)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-56)
    await inventory.sql("alter table ledger disable trigger append_only")
    await inventory.sql("update ledger set created_at = now() - interval '29 days'")

    assert await low_pools(shop, days_of_cover=365) == []


async def test_counts_transfers_and_holds_do_not_add_to_the_pace_of_a_pool(shop: Shop) -> None:
    one, two = await shop.create_pool(84), await shop.create_pool(0)
    await shop.call("set_pool_quantity", pool_id=one["id"], quantity=60)
    await shop.call("transfer_quantity", from_pool_id=one["id"], to_pool_id=two["id"], quantity=40)
    await shop.call("hold_quantity", pool_id=one["id"], quantity=10)

    (listed,) = (await shop.call("list_low_stock", threshold=20))["pools"]

    assert (listed["available"], listed["taken_per_day"], listed["days_of_cover"]) == (10, 0.0, None)


async def test_undone_sales_and_corrections_do_not_add_to_the_pace_of_a_pool(shop: Shop) -> None:
    pool = await shop.create_pool(84)
    await shop.call("record_sale", pool_id=pool["id"], quantity=28)
    sale = (await shop.call("record_sale", pool_id=pool["id"], quantity=14))["entries"][0]
    loss = (await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-14))["entries"][0]
    for entry in (sale, loss):
        await shop.call("revert_entry", entry_id=entry["id"])

    (listed,) = (await shop.call("list_low_stock", threshold=84))["pools"]

    assert (listed["available"], listed["taken_per_day"], listed["days_of_cover"]) == (56, 1.0, 56.0)


async def test_undoing_an_older_sale_or_a_delivery_changes_no_pace(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(84)
    old = (await shop.call("record_sale", pool_id=pool["id"], quantity=14))["entries"][0]
    await inventory.sql("alter table ledger disable trigger append_only")
    await inventory.sql("update ledger set created_at = now() - interval '29 days'")
    delivery = (await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=10, kind="restock"))["entries"][0]
    await shop.call("record_sale", pool_id=pool["id"], quantity=28)
    for entry in (old, delivery):
        await shop.call("revert_entry", entry_id=entry["id"])

    (listed,) = (await shop.call("list_low_stock", threshold=84))["pools"]

    assert (listed["available"], listed["taken_per_day"]) == (56, 1.0)


async def test_an_empty_pool_without_draws_is_not_low_by_its_pace(shop: Shop) -> None:
    await shop.create_pool(0)

    assert await low_pools(shop, days_of_cover=365) == []


async def test_pages_follow_one_another(pools_at_thresholds: Shop) -> None:
    first = await pools_at_thresholds.call("list_low_stock", threshold=50, limit=3)
    second = await pools_at_thresholds.call("list_low_stock", threshold=50, limit=3, cursor=first["next_cursor"])

    assert [pool["name"] for page in (first, second) for pool in page["pools"]] == ["Full", "At", "Held", "Careless"]
    assert second["next_cursor"] is None


async def test_pools_of_another_shop_are_not_listed_as_low(pools_at_thresholds: Shop, inventory: Inventory) -> None:
    assert await low_pools(await inventory.create_shop(), threshold=10**6, days_of_cover=365) == []
