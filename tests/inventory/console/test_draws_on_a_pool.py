"""Draws on a pool by variant and by kind of change, in the time that the chart shows."""

from typing import Any

import psycopg
import pytest

from holdfast.inventory.stock import retention
from holdfast.inventory.stock.pool_history import MAX_NAMED_DRAWS
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, Inventory, Shop
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.orders.stories import PlatformOrder, deliver_orders

OLD = """
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, by_variant, created_at)
    values (%(shop)s, 99, %(pool)s, 2, 'sale', -6, 0, 44, 0, false, 9, 'agent', 'record_sale', %(by_variant)s,
            date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - %(before)s::interval)
"""


async def draws_on_page(admin: Admin, pool: dict[str, Any]) -> str:
    """What the page of a pool says of who drew what."""
    text = main_text(await admin.get(f"/console/pools/{pool['id']}"))
    return text.partition("Totals since")[2]


async def test_draws_of_agents_are_summed_by_variant_and_by_kind_of_change(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(100, members=[{**PACKS[0], "title": "One <jar>"}, {**PACKS[1], "sku": "H-6"}])
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)
    await own_shop.call("record_sale", variant_gid=SINGLE, quantity=1)
    await own_shop.call("record_sale", variant_gid=SINGLE, quantity=3)
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=5)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-7)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=20)

    text = await draws_on_page(admin, pool)

    by_variant, _, by_source = text.partition("By type")
    assert "H-6 1 12 units One <jar> 2 4 units For no variant 2 12 units" in by_variant
    assert "Counts, corrections, transfers and sales of the pool itself belong to no variant." in by_variant
    assert "Recorded sales 4 21 units Corrections 1 7 units" in by_source


async def test_an_order_draws_by_its_lines_and_shows_returned_units(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(100, members=PACKS)
    order = PlatformOrder((SIX_PACK, 2), (SINGLE, 3))
    await deliver_orders(admin.inventory, order.payload(), shop=own_shop)
    order.back(next(iter(order.lines)), 1)
    await deliver_orders(admin.inventory, order.payload(), shop=own_shop)

    text = await draws_on_page(admin, pool)

    assert "Variant 1006 1 12 units 6 came back Variant 1001 1 3 units" in text
    assert "Orders 2 15 units 6 came back" in text
    assert "For no variant" not in text


async def test_a_kit_draws_on_each_of_its_pools(admin: Admin, own_shop: Shop) -> None:
    honey = await own_shop.create_pool(50, members=PACKS)
    boxes = await own_shop.create_pool(9, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    assert "Variant 1006 1 12 units" in await draws_on_page(admin, honey)
    assert "Variant 1006 1 2 units" in await draws_on_page(admin, boxes)


async def test_draws_of_a_variant_stay_after_it_is_unlinked(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    await own_shop.call("unlink_variants", pool_id=pool["id"], variant_gids=[SIX_PACK])

    assert "Variant 1006 1 6 units" in await draws_on_page(admin, pool)


@pytest.mark.parametrize(("before", "is_listed"), [("30 days", True), ("30 days 1 second", False)])
async def test_draws_are_summed_over_the_days_of_the_chart_only(
    admin: Admin, own_shop: Shop, before: str, is_listed: bool
) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    by_variant = f'{{"{SIX_PACK}": 6}}'
    await admin.inventory.sql(OLD, shop=own_shop.id, pool=pool["id"], before=before, by_variant=by_variant)

    assert ("Variant 1006 1 6 units" in await draws_on_page(admin, pool)) is is_listed


async def test_the_smallest_draws_are_summed_in_one_row(admin: Admin, own_shop: Shop) -> None:
    gids = [f"gid://shopify/ProductVariant/{number}" for number in range(1, MAX_NAMED_DRAWS + 4)]
    pool = await own_shop.create_pool(1000, members=[{"variant_gid": gid, "units_per_sale": 1} for gid in gids])
    for place, gid in enumerate(gids, start=2):
        await own_shop.call("record_sale", variant_gid=gid, quantity=place)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    text = await draws_on_page(admin, pool)

    assert "All others 3 9 units" in text.partition("By type")[0]
    assert "For no variant 1 1 unit" in text
    assert "Variant 4 1 5 units" in text
    assert "Variant 3 1" not in text


async def test_an_undone_change_is_counted_back_to_its_kind(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(100)
    for delta in (-7, 20):
        change = await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=delta)
        await own_shop.call("revert_entry", entry_id=change["entries"][-1]["id"])

    text = await draws_on_page(admin, pool)
    assert "Corrections 1 7 units 7 came back" in text
    assert "undone" not in text


async def test_draws_older_than_any_chart_are_deleted(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    days = "select (now() at time zone 'UTC')::date - day from drawn order by day"
    await admin.inventory.sql(
        "insert into drawn select shop_id, pool_id, day - 61, source, variant_gid, 1, 6, 0 from drawn"
    )
    assert await admin.inventory.sql(days) == [(61,), (0,)]

    await admin.inventory.database.transact(retention.forget_daily_sums)

    assert await admin.inventory.sql(days) == [(0,)]
    assert "Variant 1006 1 6 units" in await draws_on_page(admin, pool)


async def test_draws_of_another_shop_are_not_shown(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    await other.create_pool(50, members=PACKS)
    await other.call("record_sale", variant_gid=SIX_PACK, quantity=1)

    pool = await own_shop.create_pool(50, members=PACKS)
    path = f"/console/pools/{pool['id']}"

    assert "By variant" not in main_text(await admin.get(path))
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)
    assert "Variant 1006 1 12 units" in main_text(await admin.get(path))


async def test_an_entry_whose_variants_do_not_sum_to_its_delta_is_refused(inventory: Inventory, shop: Shop) -> None:
    pool = await shop.create_pool(50)

    with pytest.raises(psycopg.errors.IntegrityError, match="took another number"):
        await inventory.sql(OLD, shop=shop.id, pool=pool["id"], before="0", by_variant=f'{{"{SIX_PACK}": 5}}')
