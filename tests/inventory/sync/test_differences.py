"""Levels are changed by differences: once, also if the result of the call is unknown."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.inventory.sync import levels, pushing
from holdfast.inventory.sync.model import OrderLevelChange
from holdfast.inventory.sync.shop_sync import SyncWork
from holdfast.kit.background import row_work
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.shops import count
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.platform_shop import DOMAIN, PlatformSource
from tests.inventory.sync.sync_scene import (
    SyncScene,
    add_location,
    count_level_calls,
    open_pooled_shop,
    sale_of,
    singles_by_location,
    spread_shares,
)


@contextlib.asynccontextmanager
async def open_followed_pool(platform_source: PlatformSource, policy: str = "adopt") -> AsyncGenerator[SyncScene]:
    """A pool of 38 whose levels have been set before: (38, 6, 3)."""
    async with open_pooled_shop(platform_source, policy=policy) as scene:
        await scene.adjust(-12)
        await scene.sync_due()
        await scene.end_push_pause()
        yield scene


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    async with open_followed_pool(platform_source) as scene:
        yield scene


async def attend_again(scene: SyncScene) -> None:
    """Let the pause after a failure be over, and attend."""
    await scene.inventory.sql("update syncs set leased_until = null")
    await scene.sync_due()


async def test_a_level_that_moved_meanwhile_is_changed_at_once_and_what_moved_it_is_kept(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    scene.count("Single", 36)  # two are sold, and nothing is told of it yet
    await scene.adjust(-6)
    await scene.sync_due()

    assert scene.levels() == (30, 5, 2)
    assert count_level_calls(scene) == before + 1
    assert await scene.row("Single", "available, expected, target, read_again") == (30, 32, 32, False)
    await scene.transact(lambda tx: levels.explain(tx, scene.shop.id, [sale_of(scene, "Single", -2)]))
    await scene.adjust(-2)
    await scene.end_push_pause()
    await scene.sync_due()
    assert scene.levels()[0] == 30
    assert await scene.row("Single", "available, expected, target, suspect_at") == (30, 30, 30, None)


async def test_a_push_by_differences_does_not_depend_on_the_known_quantity_of_a_level(scene: SyncScene) -> None:
    await scene.observe_levels("Single", available=20)
    await scene.adjust(-6)
    await scene.sync_due()

    assert scene.levels() == (32, 5, 2)


async def test_a_newer_observation_of_a_level_is_kept(scene: SyncScene) -> None:
    scene.platform.plan(Fault("after", "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    scene.count("Single", 29)
    await scene.observe_levels("Single")
    await attend_again(scene)

    assert await scene.row("Single", "available, expected, push_id") == (29, 32, None)


async def test_a_level_set_back_before_the_answer_came_is_read_again(scene: SyncScene) -> None:
    before = scene.levels()[0]
    scene.platform.plan(Fault("after", "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    scene.count("Single", before)
    await scene.observe_levels("Single")
    await scene.inventory.sql("update levels set seen_at = seen_at + interval '2 seconds'")  # times are whole seconds
    await attend_again(scene)

    assert await scene.row("Single", "read_again, push_id") == (True, None)


KINDS: list[Any] = ["before", "after", "down", "throttle", "half", "busy", "away", "failing"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_whose_outcome_is_not_known_counts_once_though_the_levels_move_between(
    scene: SyncScene, kind: Any
) -> None:
    before = count_level_calls(scene)
    scene.platform.plan(Fault(kind, "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    [single, *_] = scene.levels()
    scene.count("Single", single - 2)
    await attend_again(scene)

    assert scene.levels() == (30, 5, 2)
    assert count_level_calls(scene) == before + 1


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_an_edit_by_a_person_between_two_attempts_is_adopted_and_nothing_else(
    scene: SyncScene, kind: Any
) -> None:
    scene.platform.plan(Fault(kind, "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    [single, *_] = scene.levels()
    scene.count("Single", single + 10)
    await scene.observe_levels("Single")
    await attend_again(scene)
    await scene.observe_levels("Single")
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 42
    await scene.end_push_pause()
    await scene.sync_due()
    assert scene.levels() == (42, 7, 3)


async def test_a_service_that_stops_in_the_middle_of_a_call_leaves_it_to_the_next_one(scene: SyncScene) -> None:
    before = count_level_calls(scene)
    scene.platform.plan(Fault("slow", "AdjustLevels", seconds=30))
    async with run_in_background(row_work.run(scene.inventory.database, SyncWork(scene.inventory.database))):
        await scene.adjust(-6)
        await eventually(lambda: scene.levels() == (32, 5, 2))
    scene.count("Single", 31)
    await scene.sync_due()

    assert scene.levels() == (31, 5, 2)
    assert await scene.row("Single", "push_id, expected") == (None, 32)
    assert count_level_calls(scene) == before + 1


@pytest.mark.parametrize("operation", ["SetLevels", "AdjustLevels"])
@pytest.mark.parametrize("kind", ["before", "after"])
async def test_a_call_that_is_too_old_for_its_key_is_not_made_again_and_is_no_edit(
    platform_source: PlatformSource, operation: str, kind: Any
) -> None:
    async with (
        open_pooled_shop(platform_source) if operation == "SetLevels" else open_followed_pool(platform_source) as scene
    ):
        left = await scene.shop.on_hand(scene.pool_id) - 6
        scene.platform.plan(Fault(kind, operation))
        await scene.adjust(-6)
        await scene.sync_due()
        await scene.inventory.sql("update pushes set inserted_at = now() - interval '21 hours'")
        await attend_again(scene)
        await scene.end_push_pause()
        await scene.sync_due()

        assert scene.levels() == (left, left // 6, left // 12)
        await scene.end_grace_and_sync()
        assert await scene.shop.on_hand(scene.pool_id) == left
        assert scene.levels() == (left, left // 6, left // 12)


async def test_a_sale_received_after_an_abandoned_call_counts_once(scene: SyncScene) -> None:
    scene.platform.plan(Fault("after", "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    moment = datetime.now(UTC).replace(microsecond=0)  # the platform tells whole seconds
    sale = OrderLevelChange(scene.variants["Single"].gid, -2, moment)
    scene.count("Single", 30)
    await scene.inventory.sql("update pushes set inserted_at = now() - interval '21 hours'")
    await attend_again(scene)
    await scene.transact(lambda tx: levels.explain(tx, scene.shop.id, [sale]))
    await scene.adjust(-2)
    await scene.end_push_pause()
    await scene.sync_due()
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 30
    assert scene.levels() == (30, 5, 2)


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_a_level_that_is_gone_when_the_call_is_made_again_changes_no_other_twice(
    scene: SyncScene, kind: Any
) -> None:
    scene.platform.plan(Fault(kind, "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    [gone] = scene.reported_levels("12-pack")
    await scene.transact(lambda tx: levels.forget(tx, scene.shop.id, [(gone.item_gid, gone.location_gid)]))
    await attend_again(scene)
    await scene.end_push_pause()
    await scene.sync_due()

    assert scene.levels()[:2] == (32, 5)
    await scene.end_grace_and_sync()
    assert await scene.shop.on_hand(scene.pool_id) == 32
    assert scene.levels()[:2] == (32, 5)


async def test_a_push_read_by_two_processes_is_stored_once(scene: SyncScene) -> None:
    scene.platform.plan(Fault("after", "AdjustLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    push = await scene.transact(lambda tx: pushing.next_push(tx, scene.shop.id, pushing.MAX_LEVELS_PER_PUSH))
    assert push is not None
    early = scene.reported_levels()
    await attend_again(scene)
    scene.count("Single", 31)
    await scene.observe_levels("Single")
    await scene.transact(lambda tx: pushing.begin_again(tx, scene.shop.id, push, early))

    assert await scene.row("Single", "available, expected") == (31, 32)


async def test_a_sale_received_before_its_level_is_not_subtracted_twice(scene: SyncScene) -> None:
    second = await add_location(scene, "Market stall")
    await spread_shares(scene)  # all of it to each
    await singles_by_location(scene)
    await scene.adjust(-1)
    assert await singles_by_location(scene) == (37, 37)

    count(scene.platform.state, DOMAIN, scene.variants["Single"].item, second.id, 36)
    await scene.transact(lambda tx: levels.explain(tx, scene.shop.id, [sale_of(scene, "Single", -1)]))
    await scene.adjust(-1)
    assert await singles_by_location(scene) == (37, 36)

    await scene.observe_levels("Single")
    assert [await singles_by_location(scene) for _ in range(2)][-1] == (36, 36)


async def test_a_push_that_would_take_a_level_below_zero_sets_it_to_zero(scene: SyncScene) -> None:
    scene.count("Single", 1)
    await scene.observe_levels("Single")
    await scene.adjust(-38)
    await scene.sync_due()

    assert scene.levels() == (0, 0, 0)


async def test_a_negative_level_is_set_to_zero_once_it_is_observed(scene: SyncScene) -> None:
    scene.count("Single", 1)
    await scene.adjust(-38)
    await scene.sync_due()
    assert scene.levels() == (-37, 0, 0)
    await scene.end_push_pause()
    await scene.sync_due()

    assert scene.levels() == (0, 0, 0)


async def test_a_level_that_the_platform_does_not_change_is_parked_and_the_others_are_changed(scene: SyncScene) -> None:
    single = scene.variants["Single"]
    [place] = scene.platform.locations(DOMAIN)
    scene.platform.state.levels.remove(DOMAIN, single.item, place.id)
    await scene.adjust(-6)
    await scene.sync_due()

    assert scene.levels()[1:] == (5, 2)
    [(parked,)] = [await scene.row("Single", "parked")]
    assert "not stocked at the location" in parked


async def test_a_pool_that_enforces_its_quantity_sets_levels_by_comparison(platform_source: PlatformSource) -> None:
    async with open_followed_pool(platform_source, policy="enforce") as scene:
        scene.platform.plan(Fault("down", "AdjustLevels", times=9))
        scene.count("6-pack", 10)
        await scene.observe_levels("6-pack")
        await scene.end_grace_and_sync()
        assert scene.levels() == (38, 6, 3)

        scene.count("Single", 40)
        await scene.shop.call("resync", pool_id=scene.pool_id)
        await scene.end_push_pause()
        await scene.sync_due()
        await scene.end_grace_and_sync()
        assert scene.levels() == (38, 6, 3)
