"""Quantities that others set at the platform are handled by the policy of the pool."""

from functools import partial
from typing import Any

import pytest

from holdfast.inventory.sync import edits, levels
from holdfast.inventory.sync.model import PUSH_STREAK
from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.platform_shop import DOMAIN, SECRET, PlatformSource
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop


async def test_an_edit_is_adopted_after_the_grace(scene: SyncScene) -> None:
    scene.count("6-pack", 10)
    await scene.observe_levels("6-pack")
    await scene.sync_due()
    assert await scene.shop.on_hand(scene.pool_id) == 50
    assert scene.levels() == (50, 10, 4)

    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 62
    [entry, *_] = await scene.shop.entries()
    assert (entry["kind"], entry["delta"], entry["actor"]) == ("external_edit", 12, "platform")
    assert "changed the quantity at the platform by +2" in entry["reason"]
    assert scene.levels() == (62, 10, 5)
    assert await scene.inventory.ledger_differences() == []


async def test_an_edit_in_the_middle_of_sales_is_adopted_without_them(scene: SyncScene) -> None:
    scene.count("Single", 70)
    await scene.observe_levels("Single")
    await scene.adjust(-6)
    await scene.sync_due()
    assert scene.levels() == (64, 7, 3)

    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 64
    assert scene.levels() == (64, 10, 5)


@pytest.mark.parametrize(("policy", "levels", "parked"), [("enforce", (50, 8, 4), False), ("flag", (50, 10, 4), True)])
async def test_a_pool_can_enforce_its_quantity_or_flag_the_edit(
    platform_source: PlatformSource, policy: str, levels: tuple[int, ...], parked: bool
) -> None:
    async with open_pooled_shop(platform_source, policy=policy) as scene:
        scene.count("6-pack", 10)
        await scene.observe_levels("6-pack")
        await scene.end_grace_and_sync()

        assert await scene.shop.on_hand(scene.pool_id) == 50
        assert scene.levels() == levels
        drift: list[dict[str, Any]] = (await scene.shop.call("get_drift"))["drift"]
        assert [difference["cause"] for difference in drift] == ["parked"] * parked
        await scene.adjust(-6)
        await scene.end_push_pause()
        await scene.sync_due()
        assert scene.levels()[1] == (10 if parked else 7)
        if parked:
            assert "It was set to 10 at the platform" in drift[0]["note"]
            assert await scene.shop.call("resync", pool_id=scene.pool_id) == {"dry_run": False, "levels": 3}
            await scene.end_push_pause()
            await scene.sync_due()
            assert scene.levels() == (44, 7, 3)


async def test_an_edit_without_a_webhook_is_found_when_the_pool_is_pushed(scene: SyncScene) -> None:
    scene.count("Single", 60)
    await scene.adjust(-6)
    await scene.sync_due()
    await scene.end_push_pause()
    await scene.sync_due()
    assert scene.levels() == (54, 7, 3)

    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 54


async def test_only_a_level_that_was_just_read_is_taken_for_an_edit(scene: SyncScene) -> None:
    for title, quantity in (("Single", 60), ("6-pack", 10)):
        scene.count(title, quantity)
        await scene.observe_levels(title)
    await scene.inventory.sql("update levels set suspect_at = now() where suspect_at is not null")
    [single] = await scene.row("Single", "item_gid")

    handle = partial(edits.handle_edits, shop_id=scene.shop.id, item_gids={single})
    await scene.inventory.database.transact(handle, scene.shop.id)

    assert await scene.shop.on_hand(scene.pool_id) == 60
    assert await scene.row("6-pack", "available, expected, suspect_at <= now()") == (10, 8, True)


async def test_a_kit_that_is_edited_is_set_back(scene: SyncScene) -> None:
    await scene.shop.create_pool(9, members=[{"variant_gid": scene.variants["6-pack"].gid, "units_per_sale": 1}])
    await scene.sync_due()
    scene.count("6-pack", 20)
    await scene.observe_levels("6-pack")
    await scene.end_grace_and_sync()

    assert scene.levels() == (50, 8, 4)
    assert await scene.shop.on_hand(scene.pool_id) == 50


async def test_a_late_webhook_of_an_order_is_no_edit(scene: SyncScene) -> None:
    await scene.observe_levels("Single", available=47)
    await scene.sync_due()
    assert (await scene.row("Single", "suspect_at is not null"))[0]

    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 50
    assert await scene.row("Single", "available, expected, suspect_at") == (50, 50, None)


async def test_a_late_webhook_begins_no_grace_again(scene: SyncScene) -> None:
    [late] = scene.reported_levels("Single", available=41)
    scene.platform.clock.advance(5)
    scene.count("Single", 60)
    await scene.observe_levels("Single")
    await scene.inventory.sql("update levels set suspect_at = now() + interval '1 second' where suspect_at is not null")
    await scene.transact(lambda tx: levels.observe(tx, scene.shop.id, [late]))

    row = await scene.row("Single", "available, suspect_at <= now() + interval '1 second'")
    assert row == (60, True)


async def test_orders_that_wait_put_the_judgement_off(scene: SyncScene) -> None:
    scene.count("Single", 48)
    await scene.observe_levels("Single")
    await scene.inventory.sql(
        f"""insert into webhooks (shop_id, topic, webhook_id, due_at, payload)
            values ({scene.shop.id}, 'orders/create', 'w', now() + interval '1 hour', '{{}}')"""
    )
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 50
    assert (await scene.row("Single", "suspect_at > now() + interval '10 seconds'"))[0]


async def test_a_level_that_another_program_sets_as_often_is_parked(scene: SyncScene) -> None:
    await scene.inventory.sql(f"update levels set {PUSH_STREAK} = 7")
    scene.count("Single", 60)
    await scene.inventory.sql("update pools set policy = 'enforce'")
    await scene.observe_levels("Single")
    await scene.end_grace_and_sync()

    [parked] = (await scene.shop.call("get_drift"))["drift"]
    assert parked["note"] == "Another app sets it as often as it is set from here."
    status = await scene.shop.call("get_sync_status")
    assert (status["parked"], status["pending"]) == (1, 0)


async def test_an_edit_that_waits_for_orders_is_not_lost_when_the_pool_is_paused_and_resumed(scene: SyncScene) -> None:
    scene.count("Single", 60)
    await scene.observe_levels("Single")
    await scene.sync_due()

    await scene.shop.call("pause_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.shop.call("resume_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 60
    assert scene.levels() == (60, 10, 5)
    assert await scene.inventory.ledger_differences() == []


async def test_an_edit_while_the_pool_is_paused_is_handled_when_it_is_resumed(scene: SyncScene) -> None:
    await scene.shop.call("pause_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    scene.count("Single", 60)
    await scene.observe_levels("Single")
    await scene.sync_due()
    assert (await scene.row("Single", "target, suspect_at")) == (None, None)

    await scene.shop.call("resume_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 60


async def test_an_order_while_the_pool_is_paused_is_no_edit(scene: SyncScene) -> None:
    await scene.shop.call("pause_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    sold = scene.platform.sell(DOMAIN, SaleLine(scene.variants["6-pack"].id, 2))
    await deliver(scene.shop, "orders/create", payloads.order(sold), secret=SECRET.encode())
    await handle(scene.inventory)
    await scene.observe_levels("6-pack")

    await scene.shop.call("resume_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 38
    assert scene.levels() == (38, 6, 3)


async def test_a_change_of_a_level_while_its_variant_is_unlinked_is_no_edit(scene: SyncScene) -> None:
    single = scene.variants["Single"].gid
    await scene.shop.call("pause_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.shop.call("unlink_variants", pool_id=scene.pool_id, variant_gids=[single])
    await scene.sync_due()
    scene.count("Single", 60)
    await scene.observe_levels("Single")

    members = [{"variant_gid": single, "units_per_sale": 1}]
    await scene.shop.call("link_variants", pool_id=scene.pool_id, members=members)
    await scene.shop.call("resume_pool", pool_id=scene.pool_id)
    await scene.sync_due()
    await scene.end_grace_and_sync()

    assert await scene.shop.on_hand(scene.pool_id) == 50
    assert scene.levels() == (50, 8, 4)
