"""Past orders are read from the platform, page by page, and replayed; nothing is written to pools or to the shop."""

import pytest

from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.replays import operations
from holdfast.inventory.shopify.platform import PlatformUnreachable
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast_demo.shopify.faults import Fault
from holdfast_demo.shopify.orders import LineReturn
from tests.inventory.installs.merchants import DOMAIN
from tests.inventory.replays.scene import begin, done, know_levels, oversold, present, replayed, sell
from tests.inventory.sync.scene import Scene


async def test_orders_of_thirty_days_are_replayed_by_the_levels_of_today(scene: Scene) -> None:
    for days in (45, 31):
        sell(scene, days, ("Single", 5))
    for title, available in (("Single", 50), ("6-pack", 8), ("12-pack", 4)):
        scene.count(title, available)
    sell(scene, 20, ("12-pack", 3), ("Single", 2))
    sell(scene, 10, ("Single", 20))
    await know_levels(scene)

    result = await replayed(scene)

    [honey] = result.pools
    assert (result.orders, honey.orders, honey.began_with, honey.goods_left) == (2, 2, 50, -8)
    assert oversold(result) == [("#1004", 20, 8)]
    assert [(pack.began_with, pack.sold) for pack in honey.packs] == [(50, 22), (8, 0), (4, 3)]


async def test_a_replay_writes_nothing_to_pools_or_to_the_shop(scene: Scene) -> None:
    sell(scene, 3, ("Single", 2))
    await know_levels(scene)
    everything = """
        select (select count(*) from pools), (select count(*) from ledger), (select count(*) from members),
               (select count(*) from orders), (select version from shared_inventories),
               (select json_agg(levels order by item_gid, location_gid)::text from levels)
    """
    before = await scene.inventory.sql(everything)

    await done(scene, await begin(scene))

    assert await scene.inventory.sql(everything) == before
    assert scene.platform.sets(DOMAIN) == []
    assert await scene.inventory.sql("select * from replay_pages") == []


async def test_a_replay_does_not_count_restocked_units_as_sold_but_counts_lost_ones(scene: Scene) -> None:
    cancelled, lost = sell(scene, 9, ("6-pack", 2)), sell(scene, 8, ("6-pack", 1))
    part = sell(scene, 7, ("Single", 10), ("6-pack", 3))
    scene.platform.cancel(DOMAIN, cancelled.id)
    scene.platform.cancel(DOMAIN, lost.id, restock=False)
    scene.platform.refund(DOMAIN, part.id, LineReturn(part.lines[0].id, 4))

    result = await replayed(scene)

    [honey] = result.pools
    assert [(pack.units_per_sale, pack.sold) for pack in honey.packs] == [(1, 6), (6, 4), (12, 0)]
    assert (result.orders, honey.orders) == (3, 2)


async def test_lines_of_products_that_are_gone_are_counted_and_take_nothing(scene: Scene) -> None:
    tea = scene.platform.variants(DOMAIN)[3]
    scene.variants["Tea"] = tea
    sell(scene, 5, ("Tea", 1), ("Single", 1))
    sell(scene, 4, ("Tea", 2))
    scene.platform.remove_variant(DOMAIN, tea.id)
    del scene.variants["Tea"]

    result = await replayed(scene)

    assert (result.gone_lines, result.orders, result.pools[0].orders) == (2, 2, 1)


async def test_a_replay_reads_all_pages_and_large_orders_and_continues_after_stored_ones(scene: Scene) -> None:
    for number in range(130):
        sell(scene, 25 - number / 10, ("Single", 1))
    large = sell(scene, 1, *[("Single", 1)] * 12)
    for line in large.lines[:3]:
        scene.platform.refund(DOMAIN, large.id, LineReturn(line.id, 1))
    await know_levels(scene)
    task = await begin(scene)

    await operations.advance(scene.steps, task)
    first = await present(scene)
    assert (first.status, first.read, first.pools) == ("running", 100, 1)
    result = await done(scene, task)
    await operations.advance(scene.steps, task)  # once more than needed

    assert (result.orders, result.pools[0].orders) == (131, 131)
    assert result.pools[0].packs[0].sold == 130 + 9
    assert (await present(scene)).result == result


async def test_a_replay_of_very_many_orders_takes_the_newest_and_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_ORDERS", 40)
    placed = [sell(scene, 25 - number / 4, ("Single", 1)) for number in range(50)]

    result = await replayed(scene)

    assert (result.orders, result.is_cut, result.pools[0].packs[0].sold) == (40, True, 40)
    assert result.since.timestamp() == int(placed[10].created)


async def test_a_shop_without_orders_has_nothing_to_replay(scene: Scene) -> None:
    result = await replayed(scene)

    assert (result.orders, result.oversells, result.more, result.pools[0].began_with) == (0, 0, 0, 50)


async def test_a_failed_replay_is_reported_and_continues_with_the_next_attempt(scene: Scene) -> None:
    sell(scene, 3, ("Single", 1))
    task = await begin(scene)
    scene.platform.plan(Fault("down", times=3))

    with pytest.raises(PlatformUnreachable):
        await operations.advance(scene.steps, task)
    failed = await present(scene)
    assert failed.status == "failed"
    assert failed.error
    scene.platform.heal()
    again = await begin(scene)
    assert again.replay_id == task.replay_id + 1
    await operations.advance(scene.steps, task)  # of the replay that was given up
    assert (await present(scene)).status == "running"

    assert (await done(scene, again)).orders == 1


async def test_a_second_click_begins_no_second_replay(scene: Scene) -> None:
    first = await begin(scene)

    assert await begin(scene) == first


async def test_a_shop_without_access_or_without_suggestions_begins_none(scene: Scene) -> None:
    await scene.link()
    with pytest.raises(Problem) as nothing:
        await begin(scene)
    await scene.inventory.sql("update installs set broken = 'The access was withdrawn.'")
    with pytest.raises(Problem) as unconnected:
        await begin(scene)

    assert (nothing.value.type, unconnected.value.type) == (NOT_FOUND, SHOP_NOT_CONNECTED)
    assert (await present(scene)).status == "none"
