"""Changes that are made only if nothing changed since one looked."""

import asyncio
from typing import Any

import pytest

from holdfast.inventory.settings import Settings
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop, ToolRefusal, running_inventory

STOCK: list[tuple[str, dict[str, Any]]] = [
    ("set_pool_quantity", {"pool_id": 1, "quantity": 44}),
    ("adjust_pool_quantity", {"pool_id": 1, "delta": -6}),
    ("transfer_quantity", {"from_pool_id": 1, "to_pool_id": 2, "quantity": 5}),
]
CONFIGURATION: list[tuple[str, dict[str, Any]]] = [
    ("update_pool", {"pool_id": 1, "buffer": 5}),
    ("pause_pool", {"pool_id": 1}),
    ("resume_pool", {"pool_id": 1}),
    ("archive_pool", {"pool_id": 1}),
    ("restore_pool", {"pool_id": 3}),
    ("link_variants", {"pool_id": 1, "members": [{"variant_gid": SIX_PACK, "units_per_sale": 6}]}),
    ("update_member", {"pool_id": 1, "variant_gid": SINGLE, "units_per_sale": 2}),
    ("unlink_variants", {"pool_id": 1, "variant_gids": [SINGLE]}),
]

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


@pytest.fixture
async def scene(shop: Shop) -> Shop:
    """Pool 1 of 50 singles, pool 2 of the same unit, pool 3 archived."""
    await shop.create_pool(50, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])
    await shop.create_pool(20)
    await shop.create_pool(0)
    await shop.call("archive_pool", pool_id=3)
    return shop


async def version(shop: Shop, pool_id: int) -> int:
    return (await shop.call("get_pool", pool_id=pool_id))["version"]


@pytest.mark.parametrize(("tool", "arguments"), STOCK + CONFIGURATION, ids=[tool for tool, _ in STOCK + CONFIGURATION])
async def test_a_change_is_made_only_with_the_present_version(
    scene: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    id = arguments.get("pool_id") or arguments["from_pool_id"]
    present = await version(scene, id)
    before = await inventory.all_rows()

    for other in (present - 1, present + 1, 0):
        refusal = await scene.refusal(tool, **arguments, expected_version=other)
        assert refusal["code"] == "stale"
        assert refusal["current"] == {
            "pool_id": id,
            "version": present,
            "quantity": await scene.on_hand(id),
        }
    assert await inventory.all_rows() == before
    done = await scene.call(tool, **arguments, expected_version=present)

    assert done["version"] == await version(scene, id) > present


@pytest.mark.parametrize(("tool", "arguments"), STOCK, ids=[tool for tool, _ in STOCK])
async def test_a_change_is_made_only_with_the_present_quantity(
    scene: Shop, tool: str, arguments: dict[str, Any]
) -> None:
    refusal = await scene.refusal(tool, **arguments, expected_quantity=49)
    assert (refusal["code"], refusal["current"]["quantity"]) == ("stale", 50)

    await scene.call(tool, **arguments, expected_quantity=50)

    assert await scene.on_hand(1) != 50


async def test_a_stale_change_succeeds_with_the_version_named_in_the_error(scene: Shop) -> None:
    refusal = await scene.refusal("set_pool_quantity", pool_id=1, quantity=44, expected_version=0)

    present = refusal["current"]
    await scene.call(
        "set_pool_quantity",
        pool_id=1,
        quantity=44,
        expected_version=present["version"],
        expected_quantity=present["quantity"],
    )

    assert await scene.on_hand(1) == 44


@pytest.mark.parametrize("tool", ["set_pool_quantity", "adjust_pool_quantity"])
async def test_changes_in_one_batch_that_expect_the_same_version_succeed_once(scene: Shop, tool: str) -> None:
    seen = await version(scene, 1)
    arguments = [{"quantity": 44}, {"quantity": 43}] if tool == "set_pool_quantity" else [{"delta": -6}, {"delta": -7}]

    answers = await asyncio.gather(
        *(scene.call(tool, pool_id=1, expected_version=seen, **call) for call in arguments), return_exceptions=True
    )

    (lost,) = [answer for answer in answers if isinstance(answer, ToolRefusal)]
    (won,) = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert lost.code == "stale"
    assert lost.body["current"]["version"] == won["version"]
    assert await scene.on_hand(1) == won["pools"][0]["on_hand"]


async def test_changes_in_two_processes_that_expect_the_same_version_succeed_once(
    scene: Shop, settings: Settings
) -> None:
    seen = await version(scene, 1)
    async with running_inventory(settings) as second:
        shops = [scene, scene.at_service(second)] * 10
        answers = await asyncio.gather(
            *(shop.call("adjust_pool_quantity", pool_id=1, delta=-1, expected_version=seen) for shop in shops),
            return_exceptions=True,
        )

    assert sorted(answer.code if isinstance(answer, ToolRefusal) else "done" for answer in answers) == [
        "done",
        *["stale"] * 19,
    ]
    assert await scene.on_hand(1) == 49


async def test_every_change_of_the_pool_makes_its_version_old(scene: Shop) -> None:
    for tool, arguments in [*STOCK, *CONFIGURATION[:3]]:
        seen = await version(scene, 1)
        await scene.call(tool, **arguments)
        refusal = await scene.refusal("set_pool_quantity", pool_id=1, quantity=1, expected_version=seen)
        assert refusal["code"] == "stale", tool


async def test_a_change_of_one_pool_leaves_the_version_of_another(scene: Shop) -> None:
    seen = await version(scene, 1)
    await scene.call("adjust_pool_quantity", pool_id=2, delta=1)

    await scene.call("set_pool_quantity", pool_id=1, quantity=44, expected_version=seen)

    assert await scene.on_hand(1) == 44


async def test_a_negative_quantity_can_be_expected(scene: Shop) -> None:
    await scene.call("update_pool", pool_id=2, allow_negative=True)
    await scene.call("adjust_pool_quantity", pool_id=2, delta=-25)

    await scene.call("set_pool_quantity", pool_id=2, quantity=0, expected_quantity=-5)

    assert await scene.on_hand(2) == 0
