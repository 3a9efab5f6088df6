"""Adding to a pool, or taking from it: never more than is there, unless the pool allows it."""

import asyncio
from typing import Any

import pytest

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Shop, ToolRefusal


@pytest.mark.parametrize(
    ("arguments", "kind", "left"),
    [
        ({"delta": 6}, "adjust", 56),
        ({"delta": -6}, "adjust", 44),
        ({"delta": -50}, "adjust", 0),
        ({"delta": 24, "kind": "restock"}, "restock", 74),
    ],
)
async def test_an_adjustment_moves_the_quantity_by_its_delta(
    shop: Shop, arguments: dict[str, Any], kind: str, left: int
) -> None:
    pool = await shop.create_pool(50)

    change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], **arguments)

    (entry,) = change["entries"]
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == (kind, arguments["delta"], left)
    assert await shop.on_hand(pool["id"]) == left


async def test_an_adjustment_lists_every_affected_variant(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

    assert change["affected"] == [
        {"variant_gid": SINGLE, "before": 50, "after": 44},
        {"variant_gid": SIX_PACK, "before": 8, "after": 7},
        {"variant_gid": TWELVE_PACK, "before": 4, "after": 3},
    ]


async def test_an_adjustment_of_more_than_is_there_is_refused_with_the_available_quantity(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=-51)

    assert (refusal["code"], refusal["available"], refusal["requested"]) == ("not_enough_stock", 50, 51)
    assert refusal["retryable"] is False
    assert await shop.on_hand(pool["id"]) == 50
    assert len(await shop.entries(pool_id=pool["id"])) == 1


async def test_held_units_cannot_be_taken_by_others(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=20)

    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=-31)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-30)

    assert (refusal["code"], refusal["available"]) == ("not_enough_stock", 30)
    assert await shop.on_hand(pool["id"]) == 20


async def test_a_pool_that_allows_it_goes_below_zero_and_storefronts_show_zero(shop: Shop) -> None:
    pool = await shop.create_pool(5, allow_negative=True, members=PACKS)

    change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-8)

    assert (change["pools"][0]["on_hand"], change["pools"][0]["available"]) == (-3, 0)
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 0, SIX_PACK: 0, TWELVE_PACK: 0}


async def test_a_pool_in_deficit_can_be_filled_up_again_step_by_step(shop: Shop) -> None:
    pool = await shop.create_pool(0, allow_negative=True)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)
    await shop.call("update_pool", pool_id=pool["id"], allow_negative=False)

    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=4)
    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    assert (refusal["code"], refusal["available"]) == ("not_enough_stock", 0)
    assert await shop.on_hand(pool["id"]) == -6


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"delta": 0}, "delta"), ({"delta": -1, "kind": "restock"}, "delta"), ({"delta": 1, "kind": "sale"}, "kind")],
)
async def test_an_adjustment_by_zero_or_of_contradicting_fields_is_refused(
    shop: Shop, arguments: dict[str, Any], field: str
) -> None:
    pool = await shop.create_pool(50)

    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], **arguments)

    assert refusal["code"] == "validation_failed"
    assert list(refusal["errors"]) == [field]


async def test_a_pool_can_hold_a_quadrillion_and_no_more(shop: Shop) -> None:
    pool = await shop.create_pool(0)
    items = [{"pool_id": pool["id"], "delta": 10**12}] * 250
    for _ in range(4):
        await shop.call("bulk_adjust", items=items)
    assert await shop.on_hand(pool["id"]) == 10**15

    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=1)

    assert refusal["code"] == "validation_failed"
    assert await shop.on_hand(pool["id"]) == 10**15


async def test_concurrent_adjustments_of_sixty_units_of_fifty_take_exactly_fifty(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    answers = await asyncio.gather(
        *(shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1) for _ in range(60)), return_exceptions=True
    )

    refusals = [answer for answer in answers if isinstance(answer, ToolRefusal)]
    accepted = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert (len(accepted), len(refusals)) == (50, 10)
    assert sorted(answer["entries"][0]["balance_after"] for answer in accepted) == [*range(50)]
    assert len({answer["version"] for answer in accepted}) == 50
    assert await shop.on_hand(pool["id"]) == 0


async def test_a_refused_adjustment_does_not_affect_others_of_its_batch(shop: Shop) -> None:
    pool = await shop.create_pool(10)

    first, greedy, last = await asyncio.gather(
        *(shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=delta) for delta in (-4, -7, -6)),
        return_exceptions=True,
    )

    assert isinstance(greedy, ToolRefusal)
    assert not isinstance(first, BaseException)
    assert not isinstance(last, BaseException)
    assert [answer["entries"][0]["balance_after"] for answer in (first, last)] == [6, 0]
