"""Simulating a sale: what would be left, without changing anything."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop


def lines(**quantities: int) -> list[dict[str, Any]]:
    gids = {"single": SINGLE, "six": SIX_PACK, "twelve": TWELVE_PACK}
    return [{"variant_gid": gids[name], "quantity": quantity} for name, quantity in quantities.items()]


async def test_lines_of_one_pool_are_simulated_together(shop: Shop) -> None:
    await shop.create_golden_pool()

    simulated = await shop.call("simulate_sale", lines=lines(single=2, six=2, twelve=3))

    assert (simulated["possible"], simulated["shortfalls"]) == (True, [])
    assert simulated["pools"][0]["on_hand"] == 0
    assert {variant["variant_gid"]: (variant["before"], variant["after"]) for variant in simulated["affected"]} == {
        SINGLE: (50, 0),
        SIX_PACK: (8, 0),
        TWELVE_PACK: (4, 0),
    }


async def test_lines_that_fit_one_by_one_but_not_together_fall_short(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    simulated = await shop.call("simulate_sale", lines=lines(six=8, single=3))

    assert simulated["possible"] is False
    assert simulated["shortfalls"] == [
        {"pool_id": pool["id"], "name": "Honey jars", "unit": "units", "needed": 51, "available": 50, "short": 1}
    ]


async def test_the_same_variant_may_stand_in_several_lines(shop: Shop) -> None:
    await shop.create_golden_pool()

    simulated = await shop.call("simulate_sale", lines=lines(six=4) + lines(six=5))

    assert (simulated["possible"], simulated["shortfalls"][0]["needed"]) == (False, 54)


async def test_kits_that_share_a_pool_compete_for_it(shop: Shop) -> None:
    """Both come in a box of the same stock; there are jars for both, and boxes for one."""
    await shop.create_pool(50, name="Jars", members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    await shop.create_pool(50, name="Sticks", members=[{"variant_gid": TWELVE_PACK, "units_per_sale": 12}])
    both = [{"variant_gid": gid, "units_per_sale": 1} for gid in (SIX_PACK, TWELVE_PACK)]
    boxes = await shop.create_pool(3, name="Boxes", members=both)

    alone = await shop.call("simulate_sale", lines=lines(six=2))
    together = await shop.call("simulate_sale", lines=lines(six=2, twelve=2))

    assert alone["possible"] is True
    assert {variant["variant_gid"]: variant["after"] for variant in alone["affected"]} == {SIX_PACK: 1, TWELVE_PACK: 1}
    assert [(shortfall["pool_id"], shortfall["short"]) for shortfall in together["shortfalls"]] == [(boxes["id"], 1)]
    assert len(together["pools"]) == 3


async def test_units_held_or_in_the_buffer_are_a_shortfall_of_a_simulated_sale(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("update_pool", pool_id=pool["id"], buffer=10)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=5)

    simulated = await shop.call("simulate_sale", lines=lines(six=6))

    assert (simulated["shortfalls"][0]["available"], simulated["shortfalls"][0]["short"]) == (35, 1)


async def test_a_shortfall_shows_the_deficit_that_the_sale_would_leave(shop: Shop) -> None:
    """An order that happened would be counted all the same."""
    await shop.create_golden_pool()

    simulated = await shop.call("simulate_sale", lines=lines(six=10))

    assert (simulated["pools"][0]["on_hand"], simulated["pools"][0]["available"]) == (-10, 0)


@pytest.mark.parametrize("tool", ["pause_pool", "archive_pool"])
async def test_a_simulated_sale_from_a_paused_or_archived_pool_is_impossible_and_names_the_pool(
    shop: Shop, tool: str
) -> None:
    pool = await shop.create_golden_pool()
    await shop.call(tool, pool_id=pool["id"])

    simulated = await shop.call("simulate_sale", lines=lines(six=1))

    assert (simulated["possible"], simulated["inactive_pools"], simulated["shortfalls"]) == (False, [pool["id"]], [])
    assert (simulated["pools"][0]["on_hand"], simulated["affected"]) == (44, [])


async def test_a_kit_is_not_sold_while_one_of_its_pools_is_paused(shop: Shop) -> None:
    await shop.create_golden_pool()
    boxes = await shop.create_pool(5, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    await shop.call("pause_pool", pool_id=boxes["id"])

    kit = await shop.call("simulate_sale", lines=lines(six=1))
    single = await shop.call("simulate_sale", lines=lines(single=1))

    assert (kit["possible"], kit["inactive_pools"]) == (False, [boxes["id"]])
    assert (single["possible"], single["inactive_pools"]) == (True, [])


async def test_a_variant_that_draws_on_nothing_is_named(shop: Shop) -> None:
    await shop.create_pool(50, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])

    refusal = await shop.refusal("simulate_sale", lines=lines(single=1, six=1))

    assert (refusal["code"], SIX_PACK in refusal["message"]) == ("not_found", True)


async def test_a_simulated_sale_changes_nothing(shop: Shop, inventory: Inventory) -> None:
    await shop.create_golden_pool()
    before = await inventory.all_rows()

    await shop.call("simulate_sale", lines=lines(single=1, six=100))

    assert await inventory.all_rows() == before


async def test_a_simulated_sale_of_any_size_is_a_shortfall(shop: Shop) -> None:
    gid = {"variant_gid": SINGLE, "units_per_sale": 10**9}
    await shop.create_pool(50, members=[gid])

    simulated = await shop.call("simulate_sale", lines=lines(single=10**9))

    assert (simulated["possible"], simulated["shortfalls"][0]["needed"]) == (False, 10**18)


@pytest.mark.parametrize("quantity", [0, -1, 10**9 + 1, 1.5, "1", None])
async def test_a_quantity_that_cannot_be_sold_is_refused(shop: Shop, quantity: Any) -> None:
    await shop.create_golden_pool()

    refusal = await shop.refusal("simulate_sale", lines=[{"variant_gid": SINGLE, "quantity": quantity}])

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["lines"])
