"""Refusals at the limits: cursors of nothing, archived pools, and quantities that no pool can hold."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, Inventory, Shop
from tests.inventory.samples import prepare_shop

MAX_QUANTITY = 10**12


@pytest.fixture
async def scene(inventory: Inventory) -> Shop:
    return await prepare_shop(inventory)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_pools", {}),
        ("list_low_stock", {}),
        ("list_holds", {}),
        ("get_stock_history", {}),
        *(("export_csv", {"kind": kind}) for kind in ("pools", "members", "history")),
    ],
)
async def test_an_invalid_cursor_is_refused_by_name(scene: Shop, tool: str, arguments: dict[str, Any]) -> None:
    refusal = await scene.refusal(tool, **arguments, cursor="nowhere")

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["cursor"])


async def test_an_archived_pool_has_no_availability(scene: Shop) -> None:
    assert (await scene.refusal("get_availability", pool_id=3))["code"] == "pool_not_active"


async def test_more_than_a_pool_can_hold_is_refused(scene: Shop) -> None:
    """A pool can hold 10**15; a call may name a variant of which one sale takes 10**9, or a pool 250 times."""
    await scene.call("update_member", pool_id=1, variant_gid=SINGLE, units_per_sale=10**9)
    await scene.call("update_pool", pool_id=2, allow_negative=True)
    change = await scene.call("adjust_pool_quantity", pool_id=2, delta=-MAX_QUANTITY)
    for _ in range(4):
        await scene.call("bulk_adjust", items=[{"pool_id": 2, "delta": MAX_QUANTITY}] * 250)

    refusals = [
        await scene.refusal("hold_quantity", variant_gid=SINGLE, quantity=MAX_QUANTITY),
        await scene.refusal("bulk_adjust", items=[{"pool_id": 2, "delta": MAX_QUANTITY}] * 2),
        await scene.refusal("adjust_pool_quantity", pool_id=2, delta=MAX_QUANTITY),
    ]
    await scene.call("adjust_pool_quantity", pool_id=2, delta=MAX_QUANTITY - 9)
    refusals.append(await scene.refusal("revert_entry", entry_id=change["entries"][0]["id"]))

    assert [(refusal["code"], list(refusal["errors"])) for refusal in refusals] == [
        ("validation_failed", ["quantity"])
    ] * 4
