"""How many of some variants can be sold, and which pool allows no more."""

import asyncio
from typing import Any

import pytest

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, ToolRefusal


async def test_availability_of_a_pool_has_every_variant_of_it(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_golden_pool()

    availability = await shop.call("get_availability", pool_id=pool["id"])

    [[shared, version]] = await inventory.sql("select id, version from shared_inventories")
    assert availability == {
        "shared_inventory_id": shared,
        "version": version,
        "variants": {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4},
        "limiting_pool": dict.fromkeys((SINGLE, SIX_PACK, TWELVE_PACK), pool["id"]),
    }


async def test_a_kit_is_limited_by_the_pool_that_allows_least(shop: Shop) -> None:
    jars = await shop.create_golden_pool()
    boxes = await shop.create_pool(3, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])

    availability = await shop.call("get_availability", variant_gids=[SINGLE, SIX_PACK])

    assert availability["variants"] == {SINGLE: 50, SIX_PACK: 3}
    assert availability["limiting_pool"] == {SINGLE: jars["id"], SIX_PACK: boxes["id"]}


async def test_held_units_and_the_buffer_are_not_available(shop: Shop) -> None:
    pool = await shop.create_pool(50, members=PACKS, buffer=5)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=10)

    availability = await shop.call("get_availability", pool_id=pool["id"])

    assert availability["variants"] == {SINGLE: 35, SIX_PACK: 5, TWELVE_PACK: 2}


@pytest.mark.parametrize(("on_hand", "buffer"), [(-20, 0), (5, 6), (0, 0)])
async def test_an_availability_is_never_below_zero(shop: Shop, on_hand: int, buffer: int) -> None:
    pool = await shop.create_pool(0, members=PACKS, buffer=buffer, allow_negative=True)
    if on_hand:
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=on_hand)

    availability = await shop.call("get_availability", pool_id=pool["id"])

    assert availability["variants"] == {SINGLE: 0, SIX_PACK: 0, TWELVE_PACK: 0}


async def test_variants_without_an_active_pool_are_left_out_of_availability(shop: Shop) -> None:
    pool = await shop.create_pool(50, members=PACKS[:1])
    await shop.create_pool(50, members=PACKS[1:2])
    await shop.call("pause_pool", pool_id=pool["id"])

    availability = await shop.call("get_availability", variant_gids=[SINGLE, SIX_PACK, TWELVE_PACK])

    assert (availability["variants"], list(availability["limiting_pool"])) == ({SIX_PACK: 8}, [SIX_PACK])


async def test_the_version_grows_with_every_change(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    first = await shop.call("get_availability", pool_id=pool["id"])
    change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    second = await shop.call("get_availability", pool_id=pool["id"])

    assert second["version"] == change["version"] > first["version"]


@pytest.mark.parametrize(
    ("arguments", "blamed"),
    [
        ({}, "variant_gids"),
        ({"variant_gids": [SINGLE], "pool_id": 1}, "variant_gids"),
        ({"variant_gids": []}, "variant_gids"),
        ({"variant_gids": [SINGLE] * 251}, "variant_gids"),
        ({"variant_gids": ["1001"]}, "variant_gids"),
        ({"pool_id": 0}, "pool_id"),
    ],
)
async def test_an_availability_request_names_variants_or_a_pool_but_not_both(
    shop: Shop, arguments: dict[str, Any], blamed: str
) -> None:
    refusal = await shop.refusal("get_availability", **arguments)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", [blamed])


async def test_variants_and_pools_of_another_shop_have_no_availability_here(shop: Shop, inventory: Inventory) -> None:
    theirs = await (await inventory.create_shop()).create_golden_pool()

    assert (await shop.refusal("get_availability", pool_id=theirs["id"]))["code"] == "not_found"
    assert (await shop.call("get_availability", variant_gids=[SINGLE]))["variants"] == {}


async def test_calls_that_wait_together_are_answered_as_if_each_were_alone(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    archived = await shop.create_pool(5)
    await shop.call("archive_pool", pool_id=archived["id"])
    calls: list[dict[str, Any]] = [
        {"variant_gids": [SINGLE]},
        {"pool_id": archived["id"]},
        {"pool_id": 10**15},
        {"variant_gids": [SIX_PACK, TWELVE_PACK]},
        {"pool_id": pool["id"]},
    ]

    async def outcome(arguments: dict[str, Any]) -> Any:
        try:
            return (await shop.call("get_availability", **arguments))["variants"]
        except ToolRefusal as refusal:
            return refusal.body["code"]

    outcomes = await asyncio.gather(*(outcome(arguments) for arguments in calls))

    assert outcomes == [
        {SINGLE: 50},
        "pool_not_active",
        "not_found",
        {SIX_PACK: 8, TWELVE_PACK: 4},
        {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4},
    ]
