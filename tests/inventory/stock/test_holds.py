"""A hold keeps a quantity until a moment; it is given back on release or at that moment."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, ToolRefusal


async def test_held_units_stay_on_hand_and_are_not_available(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    change = await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 7")

    (entry,) = change["entries"]
    assert (entry["kind"], entry["delta"], entry["held_delta"], entry["held_after"]) == ("hold", 0, 6, 6)
    assert (change["hold"]["id"], change["hold"]["reference"]) == (entry["id"], "cart 7")
    read = await shop.call("get_pool", pool_id=pool["id"])
    assert (read["on_hand"], read["held"], read["available"]) == (50, 6, 44)
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}


@pytest.mark.parametrize(("arguments", "seconds"), [({}, 900), ({"ttl_s": 60}, 60), ({"ttl_s": 604_800}, 604_800)])
async def test_a_hold_says_when_it_expires(shop: Shop, arguments: dict[str, int], seconds: int) -> None:
    pool = await shop.create_pool(50)

    change = await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, **arguments)

    ends, began = (
        datetime.fromisoformat(text) for text in (change["hold"]["expires_at"], change["entries"][0]["created_at"])
    )
    assert ends - began == timedelta(seconds=seconds)


async def test_released_units_are_available_again(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 7"))["hold"]

    change = await shop.call("release_hold", hold_id=hold["id"])

    (entry,) = change["entries"]
    assert (entry["kind"], entry["held_delta"], entry["held_after"]) == ("release", -6, 0)
    assert entry["source_ref"] == "cart 7"
    assert change["pools"][0]["available"] == 50


async def test_more_units_than_available_cannot_be_held(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50, buffer=10)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=30)
    before = await inventory.all_rows()

    refusal = await shop.refusal("hold_quantity", pool_id=pool["id"], quantity=11)

    assert (refusal["code"], refusal["available"], refusal["requested"]) == ("not_enough_stock", 10, 11)
    assert await inventory.all_rows() == before


async def test_concurrent_holds_of_ten_times_ten_units_of_fifty_hold_five(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    answers = await asyncio.gather(
        *(shop.call("hold_quantity", pool_id=pool["id"], quantity=10) for _ in range(10)), return_exceptions=True
    )

    assert sum(isinstance(answer, ToolRefusal) for answer in answers) == 5
    held = [answer["hold"]["id"] for answer in answers if not isinstance(answer, BaseException)]
    assert len(set(held)) == 5
    assert (await shop.call("get_pool", pool_id=pool["id"]))["held"] == 50


async def test_a_hold_can_be_released_once(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    await shop.call("release_hold", hold_id=hold["id"])
    before = await inventory.all_rows()

    refusal = await shop.refusal("release_hold", hold_id=hold["id"])

    assert refusal["code"] == "hold_ended"
    assert await inventory.all_rows() == before


async def test_concurrent_releases_of_one_hold_are_done_once(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]

    answers = await asyncio.gather(
        *(shop.call("release_hold", hold_id=hold["id"]) for _ in range(5)), return_exceptions=True
    )

    assert [answer.code for answer in answers if isinstance(answer, ToolRefusal)] == ["hold_ended"] * 4
    assert (await shop.call("get_pool", pool_id=pool["id"]))["held"] == 0


async def test_a_hold_of_another_shop_cannot_be_released(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    await other.create_pool(50)
    await other.call("hold_quantity", pool_id=1, quantity=6)
    hold = (await other.call("hold_quantity", pool_id=1, quantity=6))["hold"]

    assert (await shop.refusal("release_hold", hold_id=hold["id"]))["code"] == "not_found"
    assert (await other.call("get_pool", pool_id=1))["held"] == 12


async def create_kit(shop: Shop) -> tuple[dict[str, Any], dict[str, Any]]:
    """A six-pack that takes six jars of 50 and one box of 3."""
    jars = await shop.create_pool(50, name="Jars", members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    boxes = await shop.create_pool(3, name="Boxes", members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    return jars, boxes


async def test_a_kit_is_held_in_every_pool_it_draws_on(shop: Shop) -> None:
    jars, boxes = await create_kit(shop)

    change = await shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=2)

    assert [(entry["pool_id"], entry["held_delta"]) for entry in change["entries"]] == [
        (jars["id"], 12),
        (boxes["id"], 2),
    ]
    assert change["affected"] == [{"variant_gid": SIX_PACK, "before": 3, "after": 1}]
    released = await shop.call("release_hold", hold_id=change["hold"]["id"])
    assert [(entry["pool_id"], entry["held_delta"]) for entry in released["entries"]] == [
        (jars["id"], -12),
        (boxes["id"], -2),
    ]


async def test_a_kit_of_which_one_pool_has_too_little_is_held_in_none(shop: Shop, inventory: Inventory) -> None:
    _, boxes = await create_kit(shop)
    before = await inventory.all_rows()

    refusal = await shop.refusal("hold_quantity", variant_gid=SIX_PACK, quantity=4)

    assert (refusal["code"], refusal["pool_id"], refusal["available"]) == ("not_enough_stock", boxes["id"], 3)
    assert await inventory.all_rows() == before


async def test_a_hold_of_a_kit_gives_back_what_it_took_after_the_variant_is_relinked(shop: Shop) -> None:
    """The variant is linked differently meanwhile; the hold gives back what it holds all the same."""
    jars, boxes = await create_kit(shop)
    hold = (await shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=2))["hold"]
    await shop.call("update_member", pool_id=jars["id"], variant_gid=SIX_PACK, units_per_sale=5)
    await shop.call("unlink_variants", pool_id=boxes["id"], variant_gids=[SIX_PACK])

    await shop.call("release_hold", hold_id=hold["id"])

    assert [(await shop.call("get_pool", pool_id=pool["id"]))["held"] for pool in (jars, boxes)] == [0, 0]


async def test_a_variant_that_draws_on_no_pool_cannot_be_held(shop: Shop) -> None:
    refusal = await shop.refusal("hold_quantity", variant_gid=SINGLE, quantity=1)

    assert (refusal["code"], "link_variants" in refusal["hint"]) == ("not_found", True)


@pytest.mark.parametrize("target", [{}, {"pool_id": 1, "variant_gid": SINGLE}])
async def test_a_hold_names_a_pool_or_a_variant_but_not_both(shop: Shop, target: dict[str, Any]) -> None:
    await shop.create_golden_pool()

    refusal = await shop.refusal("hold_quantity", quantity=1, **target)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["pool_id"])


async def test_a_hold_in_the_history_is_found_by_its_reference(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 7"))["hold"]
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 8")
    await shop.call("release_hold", hold_id=hold["id"])

    entries = await shop.entries(source_ref="cart 7")

    assert [entry["kind"] for entry in entries] == ["release", "hold"]
