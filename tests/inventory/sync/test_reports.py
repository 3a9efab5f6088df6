"""Tools of agents for the sync: status, drift, reconcile, resync, and the rule of locations."""

from typing import Any

import pytest

from holdfast.inventory.sync.planning import plan
from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import DOMAIN, SECRET
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.platform_rows import withdraw_access
from tests.inventory.sync.sync_scene import SyncScene


async def test_the_status_says_how_levels_follow(scene: SyncScene) -> None:
    status = await scene.shop.call("get_sync_status")

    assert (status["connected"], status["error"], status["levels"], status["pending"]) == (True, None, 3, 0)
    assert status["imported"]["status"] == "done"
    assert (status["imported"]["objects"], status["rule"]) == (10, "one")
    assert [(location["name"], location["percent"]) for location in status["locations"]] == [("Warehouse", 100)]
    assert status["rule_warning"] is None


async def test_a_change_of_a_pool_is_pending_until_its_levels_are_set(scene: SyncScene) -> None:
    await scene.adjust(-6)
    changed = await count_pending_levels(scene)
    await scene.transact(lambda tx: plan(tx, scene.shop.id))
    pending_after_plan = await count_pending_levels(scene)
    await scene.sync_due()

    assert (changed, pending_after_plan, await count_pending_levels(scene)) == (3, 3, 0)


async def test_only_the_levels_of_pools_that_changed_are_pending(scene: SyncScene) -> None:
    other = await scene.shop.create_pool(7, name="Other")
    await scene.sync_due()
    await scene.shop.call("adjust_pool_quantity", pool_id=other["id"], delta=1)

    assert await count_pending_levels(scene) == 0
    await scene.adjust(-6)
    assert (await scene.shop.call("get_sync_status", pool_id=scene.pool_id))["pending"] == 3
    assert (await scene.shop.call("get_sync_status", pool_id=other["id"]))["pending"] == 0


async def test_variants_that_have_just_been_linked_are_pending(scene: SyncScene) -> None:
    gids = [variant.gid for variant in scene.variants.values()]
    await scene.shop.call("unlink_variants", pool_id=scene.pool_id, variant_gids=gids)
    await scene.sync_due()
    before = await scene.shop.call("get_sync_status")
    members = [{"variant_gid": gid, "units_per_sale": 2} for gid in gids]
    await scene.shop.call("link_variants", pool_id=scene.pool_id, members=members)

    assert (before["levels"], before["pending"], await count_pending_levels(scene)) == (0, 0, 3)


async def count_pending_levels(scene: SyncScene) -> int:
    """How many levels the status says are yet to be set."""
    return (await scene.shop.call("get_sync_status"))["pending"]


async def test_the_lag_from_a_sale_to_its_last_level_is_counted(scene: SyncScene) -> None:
    sold = scene.platform.sell(DOMAIN, SaleLine(scene.variants["6-pack"].id, 1))
    await deliver(scene.shop, "orders/create", payloads.order(sold), secret=SECRET.encode())
    await handle(scene.inventory)
    await scene.sync_due()

    assert scene.levels() == (44, 7, 3)
    lag = (await scene.shop.call("get_sync_status"))["lag"]
    assert lag["count"] == 1
    assert 0 < lag["p50"] <= lag["p99"] < 60


async def test_a_shop_without_the_app_is_not_connected(shop: Shop) -> None:
    status = await shop.call("get_sync_status")

    assert (status["connected"], status["levels"], status["imported"]["status"]) == (False, 0, "none")


async def test_drift_and_resync_name_pools_that_are_there(shop: Shop) -> None:
    for tool in ("get_sync_status", "get_drift", "resync", "reconcile"):
        assert (await shop.refusal(tool, pool_id=999))["code"] == "not_found"


async def test_reconcile_reports_differences_and_applies_them_on_request(scene: SyncScene) -> None:
    scene.count("12-pack", 6)
    report = await scene.shop.call("reconcile", pool_id=scene.pool_id)
    assert [
        (difference["platform"], difference["expected"], difference["cause"]) for difference in report["drift"]
    ] == [(6, 4, "unexplained")]
    assert await scene.shop.on_hand(scene.pool_id) == 50

    applied = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False)
    await scene.sync_due()

    assert not applied["dry_run"]
    assert await scene.shop.on_hand(scene.pool_id) == 74
    assert scene.levels() == (74, 12, 6)
    assert (await scene.shop.call("reconcile", pool_id=scene.pool_id))["drift"] == []


async def test_reconcile_says_what_it_waits_for_and_goes_on_when_that_is_counted(scene: SyncScene) -> None:
    scene.count("12-pack", 6)
    await wait_with_an_order(scene)

    report = await scene.shop.call("reconcile", pool_id=scene.pool_id)
    applied = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False)

    for answer in (report, applied):
        [waiting] = answer["waits_for"]
        assert (waiting["topic"], waiting["attempts"], waiting["error"]) == ("orders/create", 3, "It is away.")
        assert waiting["received_at"] < waiting["next_attempt_at"]
        assert waiting["message"] == "The webhook orders/create has not been counted yet."
    assert await scene.shop.on_hand(scene.pool_id) == 50
    [waiting] = (await scene.shop.call("get_sync_status"))["waiting"]
    assert waiting["topic"] == "orders/create"
    await scene.inventory.sql("update webhooks set handled_at = now(), due_at = null, payload = null")

    assert (await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False))["waits_for"] == []
    assert await scene.shop.on_hand(scene.pool_id) == 74
    assert (await scene.shop.call("get_sync_status"))["waiting"] == []


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_reconcile_says_that_it_waits_for_a_call_that_is_not_answered_yet(scene: SyncScene, kind: Any) -> None:
    scene.platform.plan(Fault(kind, "SetLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    scene.count("12-pack", 6)

    report = await scene.shop.call("reconcile", pool_id=scene.pool_id)
    applied = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False)

    for answer in (report, applied):
        [waiting] = answer["waits_for"]
        assert waiting["message"] == "A call to the platform about 3 variants has not been answered yet."
        assert (waiting["topic"], waiting["variants"], waiting["attempts"]) == (None, 3, 1)
        assert waiting["received_at"] < waiting["next_attempt_at"]
        assert waiting["error"]
    assert (await scene.shop.call("get_sync_status"))["waiting"] == [waiting]
    assert await scene.shop.on_hand(scene.pool_id) == 44
    await scene.inventory.sql("update syncs set leased_until = null")
    await scene.sync_due()
    await scene.end_push_pause()
    await scene.sync_due()

    assert (await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False))["waits_for"] == []
    assert await scene.shop.on_hand(scene.pool_id) > 44
    assert (await scene.shop.call("get_sync_status"))["waiting"] == []


async def test_reconcile_of_a_pool_waits_for_no_call_about_another(scene: SyncScene) -> None:
    other = await scene.shop.create_pool(7, name="Other")
    scene.platform.plan(Fault("after", "SetLevels"))
    await scene.adjust(-6)
    await scene.sync_due()

    assert (await scene.shop.call("reconcile", pool_id=other["id"], dry_run=False))["waits_for"] == []


async def wait_with_an_order(scene: SyncScene) -> None:
    """An order that cannot be counted yet, and is tried again in an hour."""
    await scene.inventory.sql(
        f"""insert into webhooks (shop_id, topic, webhook_id, due_at, payload, attempts, error)
            values ({scene.shop.id}, 'orders/create', 'w', now() + interval '1 hour', '{{}}', 3, 'It is away.')"""
    )


async def test_an_unreadable_order_does_not_block_reconcile(scene: SyncScene) -> None:
    scene.count("12-pack", 6)
    await deliver(scene.shop, "orders/create", {"id": "seven"}, secret=SECRET.encode())
    await handle(scene.inventory)

    applied = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=False)

    assert applied["waits_for"] == []
    assert await scene.shop.on_hand(scene.pool_id) == 74


async def test_reconcile_without_the_platform_is_refused(scene: SyncScene) -> None:
    scene.platform.plan(Fault("down", "ReadItemLevels"))
    answer = await scene.shop.send_call("reconcile", {"pool_id": scene.pool_id})
    assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")

    await withdraw_access(scene.inventory)
    assert (await scene.shop.refusal("reconcile", pool_id=scene.pool_id))["code"] == "shop_not_connected"


async def test_the_policy_of_a_pool_can_be_changed(scene: SyncScene) -> None:
    change = await scene.shop.call("update_pool", pool_id=scene.pool_id, policy="flag")

    assert change["pool"]["policy"] == "flag"


async def test_variants_are_searched_whether_or_not_they_are_linked(scene: SyncScene) -> None:
    variants = (await scene.shop.call("search_variants", query="honey"))["variants"]
    assert [(variant["title"], variant["available"], variant["pool_ids"]) for variant in variants] == [
        ("12-pack", 4, [scene.pool_id]),
        ("6-pack", 8, [scene.pool_id]),
        ("Single", 50, [scene.pool_id]),
    ]

    unlinked = (await scene.shop.call("search_variants", unlinked_only=True))["variants"]

    assert [variant["sku"] for variant in unlinked] == ["TEA-100", "TEA-250"]
