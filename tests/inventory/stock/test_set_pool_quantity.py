"""Setting what a pool has on hand, as after counting it. The ledger keeps the difference."""

import pytest

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop


@pytest.mark.parametrize(("counted", "delta"), [(44, -6), (50, 0), (61, 11), (0, -50)])
async def test_a_pool_has_what_was_counted_and_its_ledger_the_difference(shop: Shop, counted: int, delta: int) -> None:
    pool = await shop.create_pool(50)

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=counted)

    assert await shop.on_hand(pool["id"]) == counted
    (entry,) = change["entries"]
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("set", delta, counted)
    assert (await shop.entries(pool_id=pool["id"]))[0] == entry


async def test_a_count_lists_the_variants_it_changes(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=49)

    # 49 are still eight 6-packs and four 12-packs.
    assert change["affected"] == [{"variant_gid": SINGLE, "before": 50, "after": 49}]


async def test_a_count_answers_with_the_pool_after_the_change(shop: Shop) -> None:
    pool = await shop.create_pool(50, buffer=4, low_stock_at=40)

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=44)

    (pool_after,) = change["pools"]
    assert (pool_after["on_hand"], pool_after["held"], pool_after["available"], pool_after["low_stock"]) == (
        44,
        0,
        40,
        True,
    )
    assert pool_after["version"] == change["version"] == change["entries"][0]["version"]
    read = await shop.call("get_pool", pool_id=pool["id"])
    assert {name: read[name] for name in pool_after} == pool_after


async def test_a_count_is_stored_with_its_actor_source_and_reason(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=44, reason="Counted by Ann.")

    entry = (await shop.entries(pool_id=pool["id"]))[0]
    assert (entry["actor"], entry["source"], entry["reason"]) == ("agent", "set_pool_quantity", "Counted by Ann.")
    [[actor, key]] = await inventory.sql(
        "select actor_id, (select id from api_keys where active) from ledger order by id desc limit 1"
    )
    assert actor == key


async def test_a_count_below_what_is_held_is_refused(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=10)

    refusal = await shop.refusal("set_pool_quantity", pool_id=pool["id"], quantity=9)

    assert (refusal["code"], refusal["pool_id"], refusal["available"]) == ("not_enough_stock", pool["id"], 40)
    assert await shop.on_hand(pool["id"]) == 50


async def test_a_count_may_use_up_the_buffer(shop: Shop) -> None:
    pool = await shop.create_pool(50, buffer=10)

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=3)

    assert (change["pools"][0]["on_hand"], change["pools"][0]["available"]) == (3, 0)


async def test_a_count_brings_a_pool_out_of_its_deficit(shop: Shop) -> None:
    pool = await shop.create_pool(5, allow_negative=True, members=PACKS)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-8)
    await shop.call("update_pool", pool_id=pool["id"], allow_negative=False)

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=12)

    assert (change["entries"][0]["delta"], change["entries"][0]["balance_after"]) == (15, 12)
    assert {variant["variant_gid"]: (variant["before"], variant["after"]) for variant in change["affected"]} == {
        SINGLE: (0, 12),
        SIX_PACK: (0, 2),
        TWELVE_PACK: (0, 1),
    }


async def test_a_paused_pool_can_still_be_counted(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("pause_pool", pool_id=pool["id"])

    change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=7)

    assert change["pools"][0]["on_hand"] == 7
    assert change["affected"] == []


async def test_an_archived_pool_cannot_be_counted(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.call("archive_pool", pool_id=pool["id"])

    refusal = await shop.refusal("set_pool_quantity", pool_id=pool["id"], quantity=7)

    assert refusal["code"] == "pool_not_active"
    assert await shop.on_hand(pool["id"]) == 50


async def test_a_pool_of_another_shop_cannot_be_set(shop: Shop, inventory: Inventory) -> None:
    theirs = await (await inventory.create_shop()).create_pool(50)
    unknown = await shop.refusal("set_pool_quantity", pool_id=10**9, quantity=7)

    refusal = await shop.refusal("set_pool_quantity", pool_id=theirs["id"], quantity=7)

    assert refusal["code"] == "not_found"
    assert refusal["message"].replace(str(theirs["id"]), "") == unknown["message"].replace(str(10**9), "")
