"""A dry run answers as the same call would, and changes nothing."""

import asyncio
from typing import Any, cast

import pytest
import pytest_asyncio

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TOOLS, Inventory, Shop
from tests.inventory.stock.conftest import Prepare

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_pool", {"name": "Lids", "quantity": 9, "buffer": 2, "members": PACKS[:2]}),
    ("create_pool", {"name": "Empty"}),
    ("update_pool", {"pool_id": 1, "name": "Honey", "buffer": 8, "low_stock_at": 45, "allow_negative": True}),
    ("pause_pool", {"pool_id": 1}),
    ("resume_pool", {"pool_id": 3}),
    ("archive_pool", {"pool_id": 1}),
    ("archive_pool", {"pool_id": 1, "release_variants": True}),
    ("restore_pool", {"pool_id": 4}),
    ("link_variants", {"pool_id": 2, "members": PACKS}),
    ("update_member", {"pool_id": 1, "variant_gid": SIX_PACK, "units_per_sale": 5}),
    ("unlink_variants", {"pool_id": 1, "variant_gids": [SINGLE, SIX_PACK]}),
    ("set_pool_quantity", {"pool_id": 1, "quantity": 44}),
    ("adjust_pool_quantity", {"pool_id": 1, "delta": -6, "reason": "Sold at the fair."}),
    ("bulk_adjust", {"items": [{"pool_id": 1, "delta": -6}, {"pool_id": 2, "delta": 1}]}),
    ("transfer_quantity", {"from_pool_id": 1, "to_pool_id": 2, "quantity": 5}),
    ("hold_quantity", {"variant_gid": SIX_PACK, "quantity": 2, "reference": "cart 7"}),
    ("release_hold", {"hold_id": 4}),
    ("record_sale", {"variant_gid": SIX_PACK, "quantity": 2, "order_reference": "order 7"}),
    ("record_sale", {"pool_id": 2, "quantity": 2, "hold_id": 4}),
    ("revert_entry", {"entry_id": 3}),
    ("reconcile", {"pool_id": 1}),
    ("resync", {"pool_id": 1}),
    ("set_webhook", {"url": "https://shop.example.com/webhooks"}),
    ("import_csv", {"kind": "pools", "text": "name,quantity\nJars,12\nCorks,3\n"}),
    ("import_csv", {"kind": "members", "text": f"pool,variant_gid,units_per_sale\nBoxes,{SINGLE},2\n"}),
]
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("create_pool", {"name": "jars"}, "name_taken"),
    ("update_pool", {"pool_id": 1, "name": "Boxes"}, "name_taken"),
    ("archive_pool", {"pool_id": 2}, "pool_has_holds"),
    ("unlink_variants", {"pool_id": 2, "variant_gids": [SINGLE]}, "not_found"),
    ("adjust_pool_quantity", {"pool_id": 1, "delta": -51}, "not_enough_stock"),
    ("hold_quantity", {"pool_id": 1, "quantity": 51}, "not_enough_stock"),
    ("set_pool_quantity", {"pool_id": 1, "quantity": 3, "expected_quantity": 7}, "stale"),
    ("revert_entry", {"entry_id": 4}, "not_revertible"),
    ("release_hold", {"hold_id": 1}, "not_found"),
    ("record_sale", {"pool_id": 1, "quantity": 51}, "not_enough_stock"),
    ("record_sale", {"pool_id": 1, "quantity": 1, "hold_id": 4}, "validation_failed"),
    ("import_csv", {"kind": "pools", "text": "name,quantity\nJars,many\n"}, "validation_failed"),
]
OF_THE_MOMENT = {"secret", "id", "hold_id", "created_at", "expires_at", "inserted_at", "dry_run", "version"}
OF_AN_IMPORT = {"applied"}
"""An import says itself whether anything was stored."""

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


def without_moments(answer: Any, left_out: set[str] = OF_THE_MOMENT) -> Any:
    """An answer without what differs from call to call."""
    if isinstance(answer, dict):
        fields = cast(dict[str, Any], answer)
        return {name: without_moments(value, left_out) for name, value in fields.items() if name not in left_out}
    if isinstance(answer, list):
        return [without_moments(item, left_out) for item in cast(list[Any], answer)]
    return answer


async def prepare_shop(shop: Shop) -> Shop:
    """Pool 1, jars with their packs; 2, boxes with a hold; 3, paused; 4, archived. Entries 1 to 4; hold 4."""
    await shop.create_pool(50, name="Jars", members=PACKS)
    await shop.create_pool(20, name="Boxes")
    await shop.create_pool(0, name="Paused")
    await shop.create_pool(0, name="Archived")
    await shop.call("pause_pool", pool_id=3)
    await shop.call("archive_pool", pool_id=4)
    await shop.call("adjust_pool_quantity", pool_id=2, delta=3)
    await shop.call("hold_quantity", pool_id=2, quantity=3, reference="cart 6")
    return shop


@pytest.fixture(scope="module")
def prepare() -> Prepare:
    return prepare_shop


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene(shared_inventory: Inventory) -> Shop:
    """For tests that change nothing."""
    return await prepare_shop(await shared_inventory.create_shop())


def test_every_tool_that_writes_is_tested_as_a_dry_run() -> None:
    writing = {name for name, operation in TOOLS.items() if not operation.mode.reads}

    assert {tool for tool, _ in CALLS} == writing


in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""For tests that share a scene."""

numbered = pytest.mark.parametrize(
    ("tool", "arguments"), CALLS, ids=[f"{number}-{tool}" for number, (tool, _) in enumerate(CALLS)]
)


@in_one_loop
@numbered
async def test_a_dry_run_changes_nothing_and_notifies_no_reader(
    shared_scene: Shop, shared_inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    storefront = await shared_scene.read_storefront()
    before = await shared_inventory.all_rows()

    tried = await shared_scene.call(tool, **arguments, dry_run=True)

    assert tried["dry_run"] is True
    assert await shared_inventory.all_rows() == before
    assert (await shared_scene.read_storefront()).json()["variants"] == storefront.json()["variants"]
    assert {entry["id"] for entry in tried.get("entries", [])} <= {None}


@numbered
async def test_the_call_itself_answers_what_its_dry_run_answered(
    scene: Shop, tool: str, arguments: dict[str, Any]
) -> None:
    left_out = OF_THE_MOMENT | OF_AN_IMPORT if tool == "import_csv" else OF_THE_MOMENT
    tried = await scene.call(tool, **arguments, dry_run=True)

    done = await scene.call(tool, **arguments, dry_run=False)

    assert done["dry_run"] is False
    assert without_moments(tried, left_out) == without_moments(done, left_out)


@in_one_loop
@pytest.mark.parametrize(("tool", "arguments", "code"), REFUSED, ids=[f"{tool}-{code}" for tool, _, code in REFUSED])
async def test_a_dry_run_is_refused_as_the_call_itself_is(
    shared_scene: Shop, shared_inventory: Inventory, tool: str, arguments: dict[str, Any], code: str
) -> None:
    before = await shared_inventory.all_rows()

    tried = await shared_scene.refusal(tool, **arguments, dry_run=True)
    refusal = await shared_scene.refusal(tool, **arguments, dry_run=False)

    assert tried == refusal
    assert refusal["code"] == code
    assert await shared_inventory.all_rows() == before


def versions(answer: Any) -> list[Any]:
    """Every version in an answer, at any depth."""
    if isinstance(answer, list):
        return [version for item in cast(list[Any], answer) for version in versions(item)]
    if not isinstance(answer, dict):
        return []
    fields = cast(dict[str, Any], answer)
    versions_here = [fields["version"]] if "version" in fields else []
    return versions_here + [version for value in fields.values() for version in versions(value)]


@numbered
async def test_a_dry_run_names_no_version_which_does_not_exist(
    scene: Shop, tool: str, arguments: dict[str, Any]
) -> None:
    tried = await scene.call(tool, **arguments, dry_run=True)

    assert {*versions(tried)} <= {None}


async def test_dry_runs_among_other_calls_of_one_batch_leave_no_trace(scene: Shop) -> None:
    calls = [(-50, True), (-1, False), (-49, True), (-1, False), (-48, True)]

    answers = await asyncio.gather(
        *(scene.call("adjust_pool_quantity", pool_id=1, delta=delta, dry_run=dry) for delta, dry in calls)
    )

    left = [answer["pools"][0]["on_hand"] for answer in answers]
    assert [quantity for quantity, (_, dry) in zip(left, calls, strict=True) if not dry] == [49, 48]
    # A dry run sees the stock as it is when its turn comes: before, between or after the others.
    assert all(
        quantity in {delta + on_hand for on_hand in (50, 49, 48)}
        for quantity, (delta, dry) in zip(left, calls, strict=True)
        if dry
    )
    assert await scene.on_hand(1) == 48
