"""Reading one pool, with the variants that draw on it."""

import asyncio

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, ToolRefusal


async def test_a_pool_lists_its_variants_and_how_many_of_each_can_be_sold(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    read = await shop.call("get_pool", pool_id=pool["id"])

    assert [(member["variant_gid"], member["units_per_sale"], member["effective"]) for member in read["members"]] == [
        (SINGLE, 1, 50),
        (SIX_PACK, 6, 8),
        (TWELVE_PACK, 12, 4),
    ]
    assert read["member_count"] == 3


async def test_a_pool_read_without_its_variants_still_counts_them(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    read = await shop.call("get_pool", pool_id=pool["id"], include_members=False)

    assert (read["members"], read["member_count"]) == ([], 3)


async def test_a_kit_shows_what_all_of_its_pools_allow(shop: Shop) -> None:
    jars = await shop.create_golden_pool()
    await shop.create_pool(2, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])

    read = await shop.call("get_pool", pool_id=jars["id"])

    assert [member["effective"] for member in read["members"]] == [50, 2, 4]


async def test_a_variant_with_a_pool_that_is_not_active_shows_no_number(shop: Shop) -> None:
    jars = await shop.create_golden_pool()
    boxes = await shop.create_pool(2, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    await shop.call("pause_pool", pool_id=boxes["id"])

    read = await shop.call("get_pool", pool_id=jars["id"])

    assert [member["effective"] for member in read["members"]] == [50, None, 4]


async def test_an_archived_pool_can_still_be_read(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])

    read = await shop.call("get_pool", pool_id=pool["id"])

    assert (read["status"], read["on_hand"], read["member_count"]) == ("archived", 50, 3)


async def test_concurrent_reads_of_pools_get_answers_of_their_own(shop: Shop, inventory: Inventory) -> None:
    """Everyone who waits is answered by one statement; each still gets what it asked for."""
    other = await inventory.create_shop()
    mine, theirs = await shop.create_golden_pool(), await other.create_pool(7)

    answers = await asyncio.gather(
        shop.call("get_pool", pool_id=mine["id"]),
        other.call("get_pool", pool_id=theirs["id"]),
        shop.call("get_pool", pool_id=mine["id"], include_members=False),
        shop.call("get_pool", pool_id=theirs["id"]),
        other.call("get_pool", pool_id=mine["id"]),
        return_exceptions=True,
    )

    quantities = [answer["on_hand"] for answer in answers if not isinstance(answer, BaseException)]
    codes = [answer.code for answer in answers if isinstance(answer, ToolRefusal)]
    assert (quantities, codes) == ([50, 7, 50], ["not_found", "not_found"])
