"""A call that is repeated with its key does nothing, and answers as it did before."""

import asyncio
from typing import Any

import pytest

from holdfast.inventory.resources import IDEMPOTENCY
from tests.helpers.inventory_service import (
    PACKS,
    SINGLE,
    SIX_PACK,
    TOOLS,
    Inventory,
    Shop,
    ToolRefusal,
    running_inventory,
)
from tests.inventory.stock.conftest import Prepare

OTHERWISE = {"reason": "Another one."}
CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "create_pool",
        {"name": "Lids", "quantity": 9, "members": [{"variant_gid": SIX_PACK, "units_per_sale": 6}]},
        OTHERWISE,
    ),
    ("update_pool", {"pool_id": 1, "buffer": 7}, {"buffer": 8}),
    ("pause_pool", {"pool_id": 1}, {"pool_id": 2}),
    ("resume_pool", {"pool_id": 1}, {"pool_id": 2}),
    ("archive_pool", {"pool_id": 1}, {"release_variants": True}),
    ("restore_pool", {"pool_id": 3}, {"pool_id": 2}),
    (
        "link_variants",
        {"pool_id": 2, "members": [{"variant_gid": SIX_PACK, "units_per_sale": 6}]},
        {"pool_id": 1},
    ),
    ("update_member", {"pool_id": 1, "variant_gid": SINGLE, "units_per_sale": 2}, {"units_per_sale": 3}),
    ("unlink_variants", {"pool_id": 1, "variant_gids": [SINGLE]}, {"pool_id": 2}),
    ("set_pool_quantity", {"pool_id": 1, "quantity": 44, "expected_quantity": 50}, OTHERWISE),
    ("adjust_pool_quantity", {"pool_id": 1, "delta": -6}, OTHERWISE),
    ("bulk_adjust", {"items": [{"pool_id": 1, "delta": -6}, {"pool_id": 2, "delta": 1}]}, OTHERWISE),
    ("transfer_quantity", {"from_pool_id": 1, "to_pool_id": 2, "quantity": 5}, OTHERWISE),
    ("hold_quantity", {"pool_id": 1, "quantity": 5, "reference": "cart 7"}, OTHERWISE),
    ("release_hold", {"hold_id": 3}, OTHERWISE),
    ("record_sale", {"pool_id": 2, "quantity": 1, "hold_id": 3}, {"quantity": 2}),
    ("revert_entry", {"entry_id": 1}, OTHERWISE),
    ("reconcile", {"pool_id": 1, "dry_run": False}, {"pool_id": 2}),
    ("resync", {"pool_id": 1}, {"pool_id": 2}),
    ("set_webhook", {"url": "https://shop.example.com/webhooks"}, {"types": ["stock.low"]}),
    ("import_csv", {"kind": "pools", "text": "name,quantity\nJars,12\nCorks,3\n", "dry_run": False}, OTHERWISE),
]
"""A call of every tool that writes, on the scene below, and what makes another call of it."""

IDS = [tool for tool, _, _ in CALLS]
named = pytest.mark.parametrize(("tool", "arguments"), [(tool, arguments) for tool, arguments, _ in CALLS], ids=IDS)


MADE = {"create_pool": 1, "import_csv": 2}
"""Entries of tools that answer without them."""

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


def test_every_tool_that_writes_is_tested_with_a_repeated_key() -> None:
    assert {tool for tool, _, _ in CALLS} == {name for name, operation in TOOLS.items() if not operation.mode.reads}


async def prepare_shop(shop: Shop) -> Shop:
    """Pools 1 and 2 with the entries 1 and 2, pool 3 archived; hold 3 of pool 2."""
    await shop.create_pool(50, name="Jars", members=PACKS[:1])
    await shop.create_pool(20, name="Boxes")
    await shop.create_pool(0, name="Old")
    await shop.call("archive_pool", pool_id=3)
    await shop.call("hold_quantity", pool_id=2, quantity=1)
    return shop


@pytest.fixture(scope="module")
def prepare() -> Prepare:
    return prepare_shop


@named
async def test_a_repetition_answers_the_same_and_changes_nothing(
    scene: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    first = await scene.call(tool, **arguments, idempotency_key="K")
    after = await inventory.all_rows()

    again = await scene.call(tool, **arguments, idempotency_key="K")

    assert again == first
    assert await inventory.all_rows() == after


@pytest.mark.parametrize(("tool", "arguments", "changes"), CALLS, ids=IDS)
async def test_the_same_key_with_other_arguments_is_refused(
    scene: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any], changes: dict[str, Any]
) -> None:
    await scene.call(tool, **arguments, idempotency_key="K")
    after = await inventory.all_rows()

    refusal = await scene.refusal(tool, **{**arguments, **changes}, idempotency_key="K")

    assert refusal["code"] == "idempotency_key_reused"
    assert await inventory.all_rows() == after


@named
async def test_calls_with_one_key_at_once_from_two_processes_are_one_change(
    scene: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    async with running_inventory(inventory.settings) as second:
        other = scene.at_service(second)
        entries = len(await scene.entries(limit=200))
        answers = await asyncio.gather(
            *(shop.call(tool, **arguments, idempotency_key="K") for _ in range(5) for shop in (scene, other))
        )

    assert all(answer == answers[0] for answer in answers)
    [[keys]] = await inventory.sql("select count(*) from idempotency_answers")
    assert keys == 1
    assert len(await scene.entries(limit=200)) == entries + len(answers[0].get("entries", ())) + MADE.get(tool, 0)


@named
async def test_a_dry_run_does_not_use_up_its_key(scene: Shop, tool: str, arguments: dict[str, Any]) -> None:
    tried = await scene.call(tool, **{**arguments, "dry_run": True}, idempotency_key="K")
    done = await scene.call(tool, **{**arguments, "dry_run": False}, idempotency_key="K")

    assert (tried["dry_run"], done["dry_run"]) == (True, False)


async def test_a_refused_call_does_not_use_up_its_key(scene: Shop) -> None:
    call = {"pool_id": 2, "delta": -20, "idempotency_key": "K"}
    refusal = await scene.refusal("adjust_pool_quantity", **call)
    await scene.call("adjust_pool_quantity", pool_id=2, delta=1)

    done = await scene.call("adjust_pool_quantity", **call)

    assert refusal["code"] == "not_enough_stock"
    assert done["pools"][0]["on_hand"] == 1


async def test_a_refused_import_does_not_use_up_its_key(scene: Shop) -> None:
    """Its rows name a pool that does not exist; then it does, and the very same call is sent again."""
    text = f"pool,variant_gid,units_per_sale\nCorks,{SIX_PACK},6\n"
    call = {"kind": "members", "text": text, "dry_run": False, "idempotency_key": "K"}
    refusal = await scene.refusal("import_csv", **call)
    await scene.create_pool(5, name="Corks")

    done = await scene.call("import_csv", **call)

    assert refusal["code"] == "validation_failed"
    assert (done["applied"], done["created"]) == (True, 1)


async def test_a_key_used_for_one_tool_is_refused_for_another(scene: Shop) -> None:
    await scene.call("adjust_pool_quantity", pool_id=1, delta=5, idempotency_key="K")

    refusal = await scene.refusal("set_pool_quantity", pool_id=1, quantity=5, idempotency_key="K")

    assert refusal["code"] == "idempotency_key_reused"


async def test_an_idempotency_key_of_another_shop_is_a_different_key(scene: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    theirs = await other.create_pool(50)

    await scene.call("adjust_pool_quantity", pool_id=1, delta=-6, idempotency_key="K")
    await other.call("adjust_pool_quantity", pool_id=theirs["id"], delta=-7, idempotency_key="K")

    assert (await scene.on_hand(1), await other.on_hand(theirs["id"])) == (44, 43)


async def test_a_repeated_call_gets_its_first_answer_after_later_changes(scene: Shop) -> None:
    call = {"pool_id": 1, "quantity": 44, "expected_quantity": 50, "idempotency_key": "K"}
    first = await scene.call("set_pool_quantity", **call)
    await scene.call("archive_pool", pool_id=1)

    assert await scene.call("set_pool_quantity", **call) == first


async def test_calls_of_one_batch_with_equal_and_different_keys_are_each_answered_right(scene: Shop) -> None:
    """All of these arrive in the same moment: repetitions, another use of the key, and a key of their own."""
    calls = [(-6, "K"), (-6, "K"), (-7, "K"), (-6, "L"), (-6, "K")]

    answers = await asyncio.gather(
        *(scene.call("adjust_pool_quantity", pool_id=1, delta=delta, idempotency_key=key) for delta, key in calls),
        return_exceptions=True,
    )

    first, again, other, same_key, last = answers
    assert first == again == last
    assert isinstance(other, ToolRefusal)
    assert other.code == "idempotency_key_reused"
    assert same_key != first
    assert await scene.on_hand(1) == 38


async def test_the_idempotency_key_is_stored_in_the_ledger(scene: Shop, inventory: Inventory) -> None:
    await scene.call("adjust_pool_quantity", pool_id=1, delta=-6, idempotency_key="K")

    assert await inventory.sql("select delta from ledger where idempotency_key = 'K'") == [(-6,)]


async def test_keys_are_forgotten_after_thirty_days(scene: Shop, inventory: Inventory) -> None:
    for key, age in (("old", 31), ("young", 29)):
        await scene.call("adjust_pool_quantity", pool_id=1, delta=-1, idempotency_key=key)
        await inventory.sql(
            "update idempotency_answers set inserted_at = now() - make_interval(days => %(age)s)"
            " where id = sha256(convert_to('shop ' || shop_id || ' ' || %(key)s, 'UTF8'))",
            age=age,
            key=key,
        )

    assert await inventory.database.transact(IDEMPOTENCY.forget_answers) == 1

    await scene.call("adjust_pool_quantity", pool_id=1, delta=-1, idempotency_key="young")
    assert await scene.on_hand(1) == 48


@pytest.mark.parametrize("key", ["", "k" * 201, "nul\x00", 7])
async def test_an_invalid_idempotency_key_is_refused(scene: Shop, key: Any) -> None:
    refusal = await scene.refusal("adjust_pool_quantity", pool_id=1, delta=-1, idempotency_key=key)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["idempotency_key"])
