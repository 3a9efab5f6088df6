"""Pushing levels: the platform gets the quantities of the pools."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from holdfast.inventory.sync import levels, sql
from holdfast.inventory.sync.model import PUSH_STREAK, OrderLevelChange
from holdfast.inventory.sync.pushing import PushSizes
from holdfast.inventory.sync.shop_sync import SyncWork, sync_shop
from holdfast.kit.background import row_work
from holdfast_demo.shopify.errors import Fault
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.inventory.sync.sync_scene import SyncScene, count_level_calls, sale_of


async def test_linking_variants_sets_their_levels(scene: SyncScene) -> None:
    assert scene.levels() == (50, 8, 4)


async def test_a_change_of_the_pool_is_pushed_to_all_its_variants(scene: SyncScene) -> None:
    await scene.adjust(-6)
    await scene.sync_due()

    assert scene.levels() == (44, 7, 3)
    assert await scene.row("Single", f"target, available, expected, push_id, {PUSH_STREAK}") == (44, 44, 44, None, 1)


async def test_many_changes_between_two_pushes_are_one_push(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    for _ in range(5):
        await scene.adjust(-1)
    await scene.sync_due()

    assert scene.levels() == (45, 7, 3)
    assert count_level_calls(scene) == before + 1


async def test_a_level_is_not_pushed_again_within_half_a_second(scene: SyncScene) -> None:
    await scene.adjust(-1)
    await scene.sync_due()
    await scene.adjust(-1)
    await scene.sync_due()
    assert scene.levels()[0] == 49
    [(due,)] = await scene.inventory.sql("select extract(epoch from due_at - now())::float8 from syncs")
    assert 0 < due <= 0.5

    await scene.end_push_pause()
    await scene.sync_due()

    assert scene.levels()[0] == 48


async def test_a_paused_pool_leaves_its_levels_as_they_are(scene: SyncScene) -> None:
    await scene.shop.call("pause_pool", pool_id=scene.pool_id)
    await scene.adjust(-6)
    await scene.sync_due()
    assert scene.levels() == (50, 8, 4)

    await scene.shop.call("resume_pool", pool_id=scene.pool_id)
    await scene.sync_due()

    assert scene.levels() == (44, 7, 3)


@pytest.mark.parametrize("kind", ["before", "after", "down", "throttle", "busy"])
async def test_a_push_whose_outcome_is_not_known_is_made_again_and_counts_once(scene: SyncScene, kind: str) -> None:
    before = count_level_calls(scene)
    scene.platform.plan(Fault(kind, "SetLevels"))  # pyright: ignore[reportArgumentType]
    await scene.adjust(-6)
    await scene.sync_due()
    await scene.inventory.sql("update syncs set leased_until = null")
    await scene.sync_due()

    assert scene.levels() == (44, 7, 3)
    assert count_level_calls(scene) == before + 1


async def test_a_sale_at_the_platform_needs_no_push_of_its_own_level(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    scene.count("Single", 49)
    await scene.transact(lambda tx: levels.explain(tx, scene.shop.id, [sale_of(scene, "Single", -1)]))
    await scene.adjust(-1)
    await scene.sync_due()
    assert await scene.row("Single", "target, available, expected, wanted") == (49, 50, 49, 50)
    await scene.observe_levels("Single")
    await scene.sync_due()

    assert scene.levels() == (49, 8, 4)
    assert await scene.row("Single", "target, available, expected, wanted, suspect_at") == (49, 49, 49, 49, None)
    assert count_level_calls(scene) == before


async def test_a_level_that_has_moved_is_read_again_and_what_moved_it_is_kept(scene: SyncScene) -> None:
    scene.count("Single", 48)  # two are sold, and nothing is told of it yet
    await scene.adjust(-6)
    await scene.sync_due()
    await scene.end_push_pause()
    await scene.sync_due()

    assert scene.levels() == (42, 7, 3)
    await scene.transact(lambda tx: levels.explain(tx, scene.shop.id, [sale_of(scene, "Single", -2)]))
    await scene.adjust(-2)
    await scene.end_push_pause()
    await scene.sync_due()
    assert scene.levels() == (42, 7, 3)
    assert await scene.row("Single", "target, expected, suspect_at") == (42, 42, None)


async def test_a_level_that_has_moved_is_not_read_if_the_platform_tells_of_it(scene: SyncScene) -> None:
    scene.count("Single", 48)
    await scene.adjust(-6)
    await scene.sync_due()
    assert await scene.row("Single", f"read_again, {PUSH_STREAK}, parked, push_id") == (True, 0, None, None)

    await scene.observe_levels("Single")
    assert await scene.row("Single", "read_again, available, wanted") == (False, 48, 42)
    await scene.end_push_pause()
    await scene.sync_due()

    assert scene.levels() == (42, 7, 3)


def test_calls_get_smaller_when_they_are_refused_and_larger_when_they_are_accepted() -> None:
    sizes = PushSizes()
    sizes.note_refused(1, level_count=40, moved_count=10)
    assert (sizes.size_of(1), sizes.size_of(2)) == (30, 250)
    sizes.note_refused(1, level_count=30, moved_count=20)
    assert sizes.size_of(1) == 5
    sizes.note_refused(1, level_count=5, moved_count=5)
    assert sizes.size_of(1) == 1
    for _ in range(9):
        sizes.note_accepted(1)
    assert sizes.size_of(1) == 250


async def test_a_small_call_sets_a_part_and_the_next_one_the_rest(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    sizes = PushSizes()
    sizes.note_refused(scene.shop.id, level_count=4, moved_count=2)
    await scene.adjust(-6)
    [lease] = await scene.inventory.database.transact(
        partial(sql.lease_shops, limit=1, shop_ids=None, excluded_shops=())
    )
    assert await sync_shop(scene.steps, lease, sizes)

    assert scene.levels() == (44, 7, 3)
    assert count_level_calls(scene) == before + 2


async def test_the_running_service_pushes_changes_to_levels(scene: SyncScene) -> None:
    async with run_in_background(row_work.run(scene.inventory.database, SyncWork(scene.inventory.database))):
        await scene.adjust(-6)
        await eventually(lambda: scene.levels() == (44, 7, 3))
        await scene.adjust(-2)
        await eventually(lambda: scene.levels() == (42, 7, 3))


async def test_a_shop_whose_lease_ends_in_the_middle_of_a_call_is_synced_again_by_the_same_process(
    scene: SyncScene,
) -> None:
    broken: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    before = count_level_calls(scene)
    scene.platform.plan(Fault("slow", "SetLevels", seconds=0.5))
    async with run_in_background(row_work.run(scene.inventory.database, SyncWork(scene.inventory.database))):
        await scene.adjust(-6)
        await eventually(lambda: scene.levels() == (44, 7, 3))
        await scene.inventory.sql("update syncs set leased_until = null, due_at = now()")
        await scene.transact(lambda tx: tx.notify(levels.LEVELS_CHANNEL))  # all shops are to be looked at

        async def is_at_rest() -> bool:
            [(leased,)] = await scene.inventory.sql("select leased_until is not null from syncs")
            return not leased and await scene.row("Single", "push_id") == (None,)

        await eventually(is_at_rest)
        await scene.adjust(-2)
        await eventually(lambda: scene.levels() == (42, 7, 3))
    assert count_level_calls(scene) == before + 2
    assert broken == []


async def test_a_service_that_stops_in_the_middle_of_a_call_leaves_the_shop_to_the_next_one(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    scene.platform.plan(Fault("slow", "SetLevels", seconds=30))
    async with run_in_background(row_work.run(scene.inventory.database, SyncWork(scene.inventory.database))):
        await scene.adjust(-6)
        await eventually(lambda: scene.levels() == (44, 7, 3))

    assert await scene.row("Single", "push_id is not null") == (True,)
    await scene.sync_due()

    assert await scene.row("Single", "push_id, available") == (None, 44)
    assert count_level_calls(scene) == before + 1


async def test_orders_that_go_on_while_nothing_is_left_park_no_level(scene: SyncScene) -> None:
    await scene.inventory.sql(f"update levels set {PUSH_STREAK} = 7")
    scene.count("Single", 49)
    now = datetime.now(UTC) + timedelta(seconds=1)
    await scene.transact(
        lambda tx: levels.explain(tx, scene.shop.id, [OrderLevelChange(scene.variants["Single"].gid, -1, now)])
    )
    await scene.observe_levels("Single")
    await scene.sync_due()

    assert scene.levels()[0] == 50
    assert (await scene.shop.call("get_drift"))["drift"] == []
