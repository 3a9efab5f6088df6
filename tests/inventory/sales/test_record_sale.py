"""Recording sales: of a variant or of a pool, with a hold that becomes the sale or without."""

import asyncio
from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, ToolRefusal


async def create_kit(shop: Shop) -> tuple[int, int]:
    """A six-pack that takes six jars of 50 and one box of 3. Returns the ids of the pools."""
    jars = await shop.create_pool(50, name="Jars", members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    boxes = await shop.create_pool(3, name="Boxes", members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    return jars["id"], boxes["id"]


async def hold_units(shop: Shop, **arguments: Any) -> int:
    """The id of a new hold."""
    return (await shop.call("hold_quantity", **arguments))["hold"]["id"]


async def balances(shop: Shop, *pool_ids: int) -> list[tuple[int, int]]:
    """What each pool has on hand, and what of it is held."""
    pools = [await shop.call("get_pool", pool_id=id) for id in pool_ids]
    return [(pool["on_hand"], pool["held"]) for pool in pools]


async def test_one_six_pack_of_fifty_leaves_forty_four(shop: Shop) -> None:
    await shop.create_golden_pool()

    change = await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1, order_reference="order 7")

    (entry,) = change["entries"]
    assert (entry["kind"], entry["delta"], entry["held_delta"], entry["balance_after"]) == ("sale", -6, 0, 44)
    assert (entry["actor"], entry["source"], entry["source_ref"]) == ("agent", "record_sale", "order 7")
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}
    assert [entry["id"] for entry in await shop.entries(source_ref="order 7", kinds=["sale"])] == [entry["id"]]


async def test_a_quantity_of_a_pool_is_sold_in_its_own_unit(shop: Shop) -> None:
    pool = await shop.create_pool(500, unit="g")

    change = await shop.call("record_sale", pool_id=pool["id"], quantity=120)

    assert (change["pools"][0]["on_hand"], change["version"]) == (380, change["pools"][0]["version"])


async def test_a_kit_is_sold_from_every_pool_it_draws_on(shop: Shop) -> None:
    jars, boxes = await create_kit(shop)

    change = await shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    assert [(entry["pool_id"], entry["delta"]) for entry in change["entries"]] == [(jars, -12), (boxes, -2)]
    assert change["affected"] == [{"variant_gid": SIX_PACK, "before": 3, "after": 1}]


async def test_a_kit_is_not_sold_if_one_of_its_pools_has_too_little(shop: Shop, inventory: Inventory) -> None:
    _, boxes = await create_kit(shop)
    before = await inventory.all_rows()

    refusal = await shop.refusal("record_sale", variant_gid=SIX_PACK, quantity=4)

    assert (refusal["code"], refusal["pool_id"], refusal["available"]) == ("not_enough_stock", boxes, 3)
    assert await inventory.all_rows() == before


async def test_a_hold_becomes_its_sale_in_one_step(shop: Shop, inventory: Inventory) -> None:
    jars, boxes = await create_kit(shop)
    hold = await hold_units(shop, variant_gid=SIX_PACK, quantity=2, reference="cart 7")

    change = await shop.call("record_sale", variant_gid=SIX_PACK, quantity=2, hold_id=hold)

    assert [(entry["kind"], entry["delta"], entry["held_delta"]) for entry in change["entries"]] == [
        ("sale", -12, -12),
        ("sale", -2, -2),
    ]
    assert {(entry["hold_id"], entry["source_ref"]) for entry in change["entries"]} == {(hold, "cart 7")}
    assert change["affected"] == []
    assert await balances(shop, jars, boxes) == [(38, 0), (1, 0)]
    assert (await shop.call("list_holds"))["holds"] == []
    assert await inventory.ledger_differences() == []


async def test_a_sale_of_less_than_its_hold_makes_the_rest_available(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    hold = await hold_units(shop, pool_id=pool["id"], quantity=20)

    await shop.call("record_sale", variant_gid=SIX_PACK, quantity=2, hold_id=hold)

    assert await balances(shop, pool["id"]) == [(38, 0)]
    assert (await shop.refusal("release_hold", hold_id=hold))["message"] == f"Hold {hold} was sold."


async def test_a_sale_of_more_than_its_hold_needs_available_units(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50, buffer=10)
    mine = await hold_units(shop, pool_id=pool["id"], quantity=5)
    await hold_units(shop, pool_id=pool["id"], quantity=30)
    before = await inventory.all_rows()

    refusal = await shop.refusal("record_sale", pool_id=pool["id"], quantity=11, hold_id=mine)

    assert (refusal["code"], refusal["available"], refusal["requested"]) == ("not_enough_stock", 10, 11)
    assert await inventory.all_rows() == before
    await shop.call("record_sale", pool_id=pool["id"], quantity=10, hold_id=mine)
    assert await balances(shop, pool["id"]) == [(40, 30)]


async def test_units_held_for_others_or_in_the_buffer_are_not_sold(shop: Shop) -> None:
    pool = await shop.create_pool(50, buffer=10)
    await hold_units(shop, pool_id=pool["id"], quantity=30)

    refusal = await shop.refusal("record_sale", pool_id=pool["id"], quantity=11)

    assert (refusal["code"], refusal["available"]) == ("not_enough_stock", 10)


async def test_a_pool_that_may_go_below_zero_is_sold_below_zero(shop: Shop) -> None:
    pool = await shop.create_pool(5, allow_negative=True)

    await shop.call("record_sale", pool_id=pool["id"], quantity=7)

    assert await shop.on_hand(pool["id"]) == -2


async def test_a_hold_is_sold_though_the_shop_keeps_more_back_meanwhile(shop: Shop) -> None:
    """What was promised stays promised: a buffer that grows takes nothing from it."""
    pool = await shop.create_pool(10)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    await shop.call("update_pool", pool_id=pool["id"], buffer=10)

    await shop.call("record_sale", pool_id=pool["id"], quantity=6, hold_id=hold)

    assert await balances(shop, pool["id"]) == [(4, 0)]


async def test_a_hold_of_which_less_is_there_is_sold_as_far_as_it_is_there(shop: Shop, inventory: Inventory) -> None:
    """The platform reported a sale that took what was held."""
    pool = await shop.create_pool(10)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    await inventory.sql(
        """
        insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                            version, actor, source, created_at)
        select shop_id, entries + 1, %(pool)s, 3, 'sale', -6, 0, 4, 6, false, version + 1, 'platform', 'test', now()
          from shared_inventories where shop_id = %(shop)s
        """,
        pool=pool["id"],
        shop=shop.id,
    )
    await inventory.sql("update shared_inventories set entries = 3, version = version + 1")

    refusal = await shop.refusal("record_sale", pool_id=pool["id"], quantity=5, hold_id=hold)
    assert (refusal["code"], refusal["available"]) == ("not_enough_stock", 4)
    await shop.call("record_sale", pool_id=pool["id"], quantity=4, hold_id=hold)

    assert await balances(shop, pool["id"]) == [(0, 0)]


async def test_a_hold_that_was_sold_is_not_sold_again(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    await shop.call("record_sale", pool_id=pool["id"], quantity=6, hold_id=hold)
    before = await inventory.all_rows()

    refusal = await shop.refusal("record_sale", pool_id=pool["id"], quantity=6, hold_id=hold)

    assert (refusal["code"], refusal["message"]) == ("hold_ended", f"Hold {hold} was sold.")
    assert await inventory.all_rows() == before


async def test_concurrent_sales_of_one_hold_are_done_once(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    sale = {"pool_id": pool["id"], "quantity": 6, "hold_id": hold}

    answers = await asyncio.gather(*(shop.call("record_sale", **sale) for _ in range(8)), return_exceptions=True)

    assert [answer.code for answer in answers if isinstance(answer, ToolRefusal)] == ["hold_ended"] * 7
    assert await balances(shop, pool["id"]) == [(44, 0)]
    assert await inventory.ledger_differences() == []


async def test_concurrent_sales_of_ten_times_ten_units_of_fifty_sell_five(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    answers = await asyncio.gather(
        *(shop.call("record_sale", pool_id=pool["id"], quantity=10) for _ in range(10)), return_exceptions=True
    )

    assert [answer.code for answer in answers if isinstance(answer, ToolRefusal)] == ["not_enough_stock"] * 5
    assert await shop.on_hand(pool["id"]) == 0


async def test_a_hold_past_its_expiry_is_not_sold_even_before_it_is_ended(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    await inventory.sql("update holds set expires_at = now()")

    refusal = await shop.refusal("record_sale", pool_id=pool["id"], quantity=6, hold_id=hold)

    assert (refusal["code"], refusal["message"]) == ("hold_ended", f"Hold {hold} has expired.")


async def test_a_hold_of_another_pool_does_not_become_the_sale(shop: Shop) -> None:
    jars, lids = await shop.create_pool(50), await shop.create_pool(50)
    hold = await hold_units(shop, pool_id=jars["id"], quantity=6)

    refusal = await shop.refusal("record_sale", pool_id=lids["id"], quantity=6, hold_id=hold)

    assert refusal["errors"] == {"hold_id": [f"keeps stock of pool {jars['id']}, which this sale does not take from"]}


async def test_a_hold_of_another_shop_cannot_be_sold(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    theirs = await other.create_pool(50)
    hold = await hold_units(other, pool_id=theirs["id"], quantity=6)
    mine = await shop.create_pool(50)

    refusal = await shop.refusal("record_sale", pool_id=mine["id"], quantity=6, hold_id=hold)

    assert refusal["code"] == "not_found"
    assert await balances(other, theirs["id"]) == [(50, 6)]


@pytest.mark.parametrize("target", [{}, {"pool_id": 1, "variant_gid": SINGLE}])
async def test_a_sale_names_a_pool_or_a_variant_but_not_both(shop: Shop, target: dict[str, Any]) -> None:
    await shop.create_golden_pool()

    refusal = await shop.refusal("record_sale", quantity=1, **target)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["variant_gid"])


async def test_a_variant_that_draws_on_no_pool_is_not_sold(shop: Shop) -> None:
    refusal = await shop.refusal("record_sale", variant_gid=SINGLE, quantity=1)

    assert (refusal["code"], "link_variants" in refusal["hint"]) == ("not_found", True)


async def test_an_archived_pool_sells_no_units(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.refusal("record_sale", variant_gid=SIX_PACK, quantity=1))["code"] == "pool_not_active"


async def test_a_sale_of_a_kit_expects_the_highest_version_of_its_pools(shop: Shop) -> None:
    jars, boxes = await create_kit(shop)
    await shop.call("adjust_pool_quantity", pool_id=jars, delta=1)
    before, present = [(await shop.call("get_pool", pool_id=id))["version"] for id in (boxes, jars)]

    refusal = await shop.refusal("record_sale", variant_gid=SIX_PACK, quantity=1, expected_version=before)

    assert (refusal["code"], refusal["current"]["pool_id"], refusal["current"]["version"]) == ("stale", jars, present)
    await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1, expected_version=present)


async def test_a_sale_that_is_repeated_with_its_key_sells_once(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    hold = await hold_units(shop, pool_id=pool["id"], quantity=6)
    sale = {"pool_id": pool["id"], "quantity": 6, "hold_id": hold, "idempotency_key": "order 7"}

    first, second = await shop.call("record_sale", **sale), await shop.call("record_sale", **sale)

    assert first == second
    assert await balances(shop, pool["id"]) == [(44, 0)]
