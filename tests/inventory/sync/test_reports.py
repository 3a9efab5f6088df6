"""What an agent can see and do: the status, the drift, reconcile, resync, the rule of locations."""

import pytest

from holdfast.inventory.shopify.double import payloads
from holdfast.inventory.shopify.double.faults import Fault
from holdfast.inventory.shopify.double.orders import Sold
from holdfast.inventory.sync import operations
from holdfast.inventory.sync.answers import Share
from holdfast.inventory.sync.planning import plan
from holdfast.kit.problems import VALIDATION_FAILED, Problem
from tests.inventory.installs.merchants import DOMAIN, SECRET
from tests.inventory.support import Shop
from tests.inventory.sync.scene import Scene
from tests.inventory.webhooks.deliveries import deliver, handle


async def test_the_status_says_how_levels_follow(scene: Scene) -> None:
    status = await scene.shop.call("get_sync_status")

    assert (status["connected"], status["error"], status["levels"], status["pending"]) == (True, None, 3, 0)
    assert status["imported"]["status"] == "done"
    assert (status["imported"]["objects"], status["rule"]) == (10, "all")
    assert [each["name"] for each in status["locations"]] == ["Warehouse"]


async def test_a_change_is_pending_before_it_is_reckoned_until_it_is_set(scene: Scene) -> None:
    await scene.adjust(-6)
    changed = await pending(scene)
    await scene.transact(lambda tx: plan(tx, scene.shop.id))
    reckoned = await pending(scene)
    await scene.attend()

    assert (changed, reckoned, await pending(scene)) == (3, 3, 0)


async def test_only_the_levels_of_pools_that_changed_are_pending(scene: Scene) -> None:
    other = await scene.shop.pool(7, name="Other")
    await scene.attend()
    await scene.shop.call("adjust_pool_quantity", pool_id=other["id"], delta=1)

    assert await pending(scene) == 0
    await scene.adjust(-6)
    assert (await scene.shop.call("get_sync_status", pool_id=scene.pool_id))["pending"] == 3
    assert (await scene.shop.call("get_sync_status", pool_id=other["id"]))["pending"] == 0


async def test_variants_that_have_just_been_linked_are_pending(scene: Scene) -> None:
    gids = [each.gid for each in scene.variants.values()]
    await scene.shop.call("unlink_variants", pool_id=scene.pool_id, variant_gids=gids)
    await scene.attend()
    before = await scene.shop.call("get_sync_status")
    members = [{"variant_gid": gid, "units_per_sale": 2} for gid in gids]
    await scene.shop.call("link_variants", pool_id=scene.pool_id, members=members)

    assert (before["levels"], before["pending"], await pending(scene)) == (0, 0, 3)


async def pending(scene: Scene) -> int:
    """How many levels the status says are yet to be set."""
    return (await scene.shop.call("get_sync_status"))["pending"]


async def test_the_lag_from_a_sale_to_its_last_level_is_counted(scene: Scene) -> None:
    sold = scene.platform.sell(DOMAIN, Sold(scene.variants["6-pack"].id, 1))
    await deliver(scene.shop, "orders/create", payloads.order(sold), secret=SECRET.encode())
    await handle(scene.inventory)
    await scene.attend()

    assert scene.levels() == (44, 7, 3)
    lag = (await scene.shop.call("get_sync_status"))["lag"]
    assert lag["count"] == 1
    assert 0 < lag["p50"] <= lag["p99"] < 60


async def test_a_shop_without_the_app_is_not_connected(shop: Shop) -> None:
    status = await shop.call("get_sync_status")

    assert (status["connected"], status["levels"], status["imported"]["status"]) == (False, 0, "none")


async def test_drift_and_resync_name_pools_that_are_there(shop: Shop) -> None:
    for tool in ("get_sync_status", "get_drift", "resync", "reconcile"):
        assert (await shop.refused(tool, pool_id=999))["code"] == "not_found"


async def test_reconcile_shows_what_is_different_and_applies_it_when_told(scene: Scene) -> None:
    scene.count("12-pack", 6)
    shown = await scene.shop.call("reconcile", pool_id=scene.pool_id)
    assert [(each["platform"], each["expected"], each["cause"]) for each in shown["drift"]] == [(6, 4, "unexplained")]
    assert await scene.shop.on_hand(scene.pool_id) == 50

    applied = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False)
    await scene.attend()

    assert not applied["dry_run"]
    assert await scene.shop.on_hand(scene.pool_id) == 74
    assert scene.levels() == (74, 12, 6)
    assert (await scene.shop.call("reconcile", pool_id=scene.pool_id))["drift"] == []


async def test_reconcile_needs_the_platform(scene: Scene) -> None:
    scene.platform.plan(Fault("down", "ReadLevels"))
    answer = await scene.shop.ask("reconcile", {"pool_id": scene.pool_id})
    assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")

    await scene.inventory.sql("delete from platform_tokens")
    assert (await scene.shop.refused("reconcile", pool_id=scene.pool_id))["code"] == "shop_not_connected"


async def test_quantities_are_spread_by_the_rule(scene: Scene) -> None:
    first = scene.platform.locations(DOMAIN)[0]
    second = scene.platform.add_location(DOMAIN, "Market stall")
    single = scene.variants["Single"]
    level = scene.platform.stock(DOMAIN, single.id, second.id, 0)
    await deliver(scene.shop, "locations/create", payloads.location(second), secret=SECRET.encode())
    await deliver(scene.shop, "inventory_levels/connect", payloads.level(level), secret=SECRET.encode())
    await handle(scene.inventory)

    async def spread() -> tuple[int, int]:
        await scene.rested()
        await scene.attend()
        return tuple(scene.platform.level(DOMAIN, single.id, each.id).available for each in (first, second))  # pyright: ignore[reportReturnType]

    assert await spread() == (50, 50)
    shares = [Share(first.gid, 70), Share(second.gid, 30)]
    stored = await scene.transact(lambda tx: operations.spread(tx, scene.shop.id, shares))
    assert [each.percent for each in stored] == [70, 30]
    assert await spread() == (35, 15)
    await scene.adjust(-1)
    assert await spread() == (34, 15)

    await scene.transact(lambda tx: operations.spread(tx, scene.shop.id, [Share(second.gid, 100)]))
    assert await spread() == (34, 49)
    await scene.transact(lambda tx: operations.spread(tx, scene.shop.id, []))
    assert await spread() == (49, 49)


@pytest.mark.parametrize("shares", [[99], [50, 50], [0, 100], [None, 100]])
async def test_shares_that_do_not_fit_are_refused(scene: Scene, shares: list[int | None]) -> None:
    gid = scene.platform.locations(DOMAIN)[0].gid
    wanted = [Share("gid://shopify/Location/1" if each is None else gid, each or 0) for each in shares]

    with pytest.raises(Problem) as refused:
        await scene.transact(lambda tx: operations.spread(tx, scene.shop.id, wanted))

    assert refused.value.type is VALIDATION_FAILED


async def test_the_policy_of_a_pool_can_be_changed(scene: Scene) -> None:
    change = await scene.shop.call("update_pool", pool_id=scene.pool_id, policy="flag")

    assert change["pool"]["policy"] == "flag"


async def test_variants_are_searched_whether_or_not_they_are_linked(scene: Scene) -> None:
    found = (await scene.shop.call("search_variants", query="honey"))["variants"]
    assert [(each["title"], each["available"], each["pool_ids"]) for each in found] == [
        ("12-pack", 4, [scene.pool_id]),
        ("6-pack", 8, [scene.pool_id]),
        ("Single", 50, [scene.pool_id]),
    ]

    unlinked = (await scene.shop.call("search_variants", unlinked_only=True))["variants"]

    assert [each["sku"] for each in unlinked] == ["TEA-100", "TEA-250"]
