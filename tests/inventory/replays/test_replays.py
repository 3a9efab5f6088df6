"""Past orders are read from the platform, page by page, and replayed; nothing is written to pools or to the shop."""

from collections.abc import Sequence

import pytest

from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.replays import operations
from holdfast.inventory.replays.model import ReplayResult
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.orders import LineReturn
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.replays.replay_scene import begin_replay, finish_replay, get_replay, know_levels, sell
from tests.inventory.sync.sync_scene import SyncScene


async def run_replay(scene: SyncScene) -> ReplayResult:
    """The result of a new replay."""
    await know_levels(scene)
    return await finish_replay(scene, await begin_replay(scene))


def oversold_orders(result: ReplayResult) -> Sequence[tuple[str, int, int]]:
    """Each order that took more than there was: its name, what it wanted, and what was missing."""
    return [(sell.order, sell.requested, sell.missing) for pool in result.pools for sell in pool.oversells]


async def test_orders_of_thirty_days_are_replayed_by_the_levels_of_today(scene: SyncScene) -> None:
    for days in (45, 31):
        sell(scene, days, ("Single", 5))
    for title, available in (("Single", 50), ("6-pack", 8), ("12-pack", 4)):
        scene.count(title, available)
    sell(scene, 20, ("12-pack", 3), ("Single", 2))
    sell(scene, 10, ("Single", 20))
    await know_levels(scene)

    result = await run_replay(scene)

    [honey] = result.pools
    assert (result.orders, honey.orders, honey.began_with, honey.goods_left) == (2, 2, 50, -8)
    assert oversold_orders(result) == [("#1004", 20, 8)]
    assert [(pack.began_with, pack.sold) for pack in honey.packs] == [(50, 22), (8, 0), (4, 3)]


async def test_a_replay_writes_nothing_to_pools_or_to_the_shop(scene: SyncScene) -> None:
    sell(scene, 3, ("Single", 2))
    await know_levels(scene)
    everything = """
        select (select count(*) from pools), (select count(*) from ledger), (select count(*) from members),
               (select count(*) from orders), (select version from shared_inventories),
               (select json_agg(levels order by item_gid, location_gid)::text from levels)
    """
    before = await scene.inventory.sql(everything)

    await finish_replay(scene, await begin_replay(scene))

    assert await scene.inventory.sql(everything) == before
    assert scene.platform.sets(DOMAIN) == []
    assert await scene.inventory.sql("select * from replay_pages") == []


async def test_a_replay_does_not_count_restocked_units_as_sold_but_counts_lost_ones(scene: SyncScene) -> None:
    cancelled, lost = sell(scene, 9, ("6-pack", 2)), sell(scene, 8, ("6-pack", 1))
    part = sell(scene, 7, ("Single", 10), ("6-pack", 3))
    scene.platform.cancel(DOMAIN, cancelled.id)
    scene.platform.cancel(DOMAIN, lost.id, restock=False)
    scene.platform.refund(DOMAIN, part.id, LineReturn(part.lines[0].id, 4))

    result = await run_replay(scene)

    [honey] = result.pools
    assert [(pack.units_per_sale, pack.sold) for pack in honey.packs] == [(1, 6), (6, 4), (12, 0)]
    assert (result.orders, honey.orders) == (3, 2)


async def test_lines_of_products_that_are_gone_are_counted_and_take_nothing(scene: SyncScene) -> None:
    tea = scene.platform.variants(DOMAIN)[3]
    scene.variants["Tea"] = tea
    sell(scene, 5, ("Tea", 1), ("Single", 1))
    sell(scene, 4, ("Tea", 2))
    scene.platform.remove_variant(DOMAIN, tea.id)
    del scene.variants["Tea"]

    result = await run_replay(scene)

    assert (result.gone_lines, result.orders, result.pools[0].orders) == (2, 2, 1)


async def test_a_replay_reads_all_pages_and_large_orders_and_continues_after_stored_ones(scene: SyncScene) -> None:
    for number in range(130):
        sell(scene, 25 - number / 10, ("Single", 1))
    large = sell(scene, 1, *[("Single", 1)] * 12)
    for line in large.lines[:3]:
        scene.platform.refund(DOMAIN, large.id, LineReturn(line.id, 1))
    await know_levels(scene)
    task = await begin_replay(scene)

    await operations.advance(scene.steps, task)
    first = await get_replay(scene)
    assert (first.status, first.read, first.pools) == ("running", 100, 1)
    result = await finish_replay(scene, task)
    await operations.advance(scene.steps, task)  # once more than needed

    assert (result.orders, result.pools[0].orders) == (131, 131)
    assert result.pools[0].packs[0].sold == 130 + 9
    assert (await get_replay(scene)).result == result


async def test_a_replay_of_very_many_orders_takes_the_newest_and_says_so(
    scene: SyncScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_ORDERS", 40)
    placed = [sell(scene, 25 - number / 4, ("Single", 1)) for number in range(50)]

    result = await run_replay(scene)

    assert (result.orders, result.is_cut, result.pools[0].packs[0].sold) == (40, True, 40)
    assert result.since.timestamp() == int(placed[10].created)


async def test_a_shop_without_orders_has_nothing_to_replay(scene: SyncScene) -> None:
    result = await run_replay(scene)

    assert (result.orders, result.oversells, result.more, result.pools[0].began_with) == (0, 0, 0, 50)


async def test_a_failed_replay_is_reported_and_continues_with_the_next_attempt(scene: SyncScene) -> None:
    sell(scene, 3, ("Single", 1))
    task = await begin_replay(scene)
    scene.platform.plan(Fault("down", times=3))

    with pytest.raises(PlatformUnreachable):
        await operations.advance(scene.steps, task)
    failed = await get_replay(scene)
    assert failed.status == "failed"
    assert failed.error
    scene.platform.heal()
    again = await begin_replay(scene)
    assert again.replay_id == task.replay_id + 1
    await operations.advance(scene.steps, task)  # of the replay that was given up
    assert (await get_replay(scene)).status == "running"

    assert (await finish_replay(scene, again)).orders == 1


async def test_a_second_click_begins_no_second_replay(scene: SyncScene) -> None:
    first = await begin_replay(scene)

    assert await begin_replay(scene) == first


async def test_a_shop_without_access_or_without_suggestions_begins_none(scene: SyncScene) -> None:
    await scene.link()
    with pytest.raises(Problem) as nothing:
        await begin_replay(scene)
    await scene.inventory.sql("update installs set broken = 'The access was withdrawn.'")
    with pytest.raises(Problem) as unconnected:
        await begin_replay(scene)

    assert (nothing.value.type, unconnected.value.type) == (NOT_FOUND, SHOP_NOT_CONNECTED)
    assert (await get_replay(scene)).status == "none"
