"""Work whose notification was lost is found by a poll, within the documented time."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
from mcp.client.subscriptions import ResourceUpdated

from holdfast.inventory.availability import cache
from holdfast.inventory.availability.cache import MAX_STALENESS_SECONDS, STATUS
from holdfast.inventory.catalog import importing
from holdfast.inventory.stock import expiry
from holdfast.inventory.sync import shop_sync as sync
from holdfast.kit.background import row_work
from tests.faults.lost_notifications import SLACK_SECONDS, cut_off_listener, mute_notifications, wait_until_quiet
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import SINGLE, Inventory, Shop, running_inventory
from tests.helpers.platform_webhooks import DeliveryScene as Deliveries
from tests.helpers.platform_webhooks import deliver, install_app
from tests.inventory.catalog.watching import open_agent
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop

pytestmark = pytest.mark.usefixtures("own_inventory")  # It changes the schema.


@pytest.fixture
async def synced_scene(inventory: Inventory) -> AsyncGenerator[SyncScene]:
    """A shop beside the platform, whose levels follow its pool."""
    async with open_pooled_shop(inventory.settings) as scene:
        yield scene


@contextlib.asynccontextmanager
async def open_deaf_inventory(inventory: Inventory) -> AsyncGenerator[Inventory]:
    """The same service once more, and nobody hears its notices."""
    url = await asyncio.to_thread(mute_notifications, inventory.database.url)
    async with running_inventory(inventory.settings.model_copy(update={"database_url": url})) as other:
        yield other


async def test_a_hold_whose_notice_was_lost_ends_by_a_poll(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    async def is_released() -> bool:
        return (await shop.call("get_pool", pool_id=pool["id"]))["held"] == 0

    async with open_deaf_inventory(inventory) as other, run_in_background(expiry.LOOP.run(inventory.database)):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, ttl_s=1)
        await eventually(is_released)
        await shop.at_service(other).call("hold_quantity", pool_id=pool["id"], quantity=6, ttl_s=1)
        assert not await is_released()
        await eventually(is_released, expiry.POLL_SECONDS + SLACK_SECONDS)


async def test_holds_end_while_the_listening_connection_is_cut_off(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    async def is_released() -> bool:
        return (await shop.call("get_pool", pool_id=pool["id"]))["held"] == 0

    async with run_in_background(expiry.LOOP.run(inventory.database)), cut_off_listener(inventory.database.url):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, ttl_s=1)
        await eventually(is_released, expiry.POLL_SECONDS + SLACK_SECONDS)


async def test_a_storefront_answer_is_at_most_a_second_old_without_notifications(
    shop: Shop, inventory: Inventory
) -> None:
    pool = await shop.create_golden_pool()

    async def shows_49() -> bool:
        return (await shop.read_storefront()).json()["variants"][SINGLE] == 49

    async with open_deaf_inventory(inventory) as other:
        assert not await shows_49()
        await shop.at_service(other).call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
        await eventually(shows_49, cache.TTL_SECONDS + SLACK_SECONDS)


async def test_agents_are_notified_of_a_pool_and_the_status_after_a_poll(synced_scene: SyncScene) -> None:
    pool = f"pool://{synced_scene.pool_id}"
    async with (
        open_deaf_inventory(synced_scene.inventory) as other,
        open_agent(synced_scene) as agent,
        agent.listen(resource_subscriptions=[STATUS, pool]) as changes,
    ):
        await synced_scene.shop.at_service(other).call("adjust_pool_quantity", pool_id=synced_scene.pool_id, delta=-1)
        async with asyncio.timeout(MAX_STALENESS_SECONDS + SLACK_SECONDS):
            assert await anext(changes) == ResourceUpdated(uri=pool)

        await other.database.transact(lambda tx: importing.begin(tx, synced_scene.shop.id), synced_scene.shop.id)
        async with asyncio.timeout(MAX_STALENESS_SECONDS + SLACK_SECONDS):
            assert await anext(changes) == ResourceUpdated(uri=STATUS)


async def test_agents_are_notified_while_the_listening_connection_is_cut_off(synced_scene: SyncScene) -> None:
    pool = f"pool://{synced_scene.pool_id}"
    async with (
        open_agent(synced_scene) as agent,
        agent.listen(resource_subscriptions=[pool]) as changes,
        cut_off_listener(synced_scene.inventory.database.url),
    ):
        await synced_scene.adjust(-1)
        async with asyncio.timeout(MAX_STALENESS_SECONDS + SLACK_SECONDS):
            assert await anext(changes) == ResourceUpdated(uri=pool)


async def test_a_webhook_whose_notice_was_lost_is_handled_by_a_poll(shop: Shop, inventory: Inventory) -> None:
    scene = Deliveries(inventory, await install_app(inventory, shop))

    async def handled(count: int) -> bool:
        return len(scene.handled) == count

    async with (
        open_deaf_inventory(inventory) as other,
        run_in_background(row_work.run(inventory.database, scene.handling)),
    ):
        await deliver(shop, "orders/updated", {"id": 1})
        await eventually(lambda: handled(1))
        await wait_until_quiet("webhook")
        await deliver(shop.at_service(other), "orders/updated", {"id": 2})
        await eventually(lambda: handled(2), row_work.POLL_SECONDS + SLACK_SECONDS)


async def test_webhooks_are_handled_while_the_listening_connection_is_cut_off(shop: Shop, inventory: Inventory) -> None:
    scene = Deliveries(inventory, await install_app(inventory, shop))
    async with (
        run_in_background(row_work.run(inventory.database, scene.handling)),
        cut_off_listener(inventory.database.url),
    ):
        await deliver(shop, "orders/updated", {"id": 1})
        await eventually(lambda: len(scene.handled) == 1, row_work.POLL_SECONDS + SLACK_SECONDS)


def level(synced: SyncScene, count: int) -> Callable[[], Awaitable[bool]]:
    """Whether the platform shows `count` of the single variant."""

    async def is_pushed() -> bool:
        return synced.levels()[0] == count

    return is_pushed


def running_sync(synced: SyncScene) -> Coroutine[Any, Any, None]:
    """The work on levels of one process."""
    return row_work.run(synced.inventory.database, sync.SyncWork(synced.inventory.database))


async def follow_unheard(synced: SyncScene, other: Inventory) -> None:
    """Levels follow a change of which they hear, and then one of another process of which nobody does."""
    await synced.adjust(-1)
    await eventually(level(synced, 49))
    await wait_until_quiet("levels")
    await synced.shop.at_service(other).call("adjust_pool_quantity", pool_id=synced.pool_id, delta=-1)
    await eventually(level(synced, 48), row_work.POLL_SECONDS + SLACK_SECONDS)


async def test_a_change_whose_notice_was_lost_reaches_the_platform_by_a_poll(synced_scene: SyncScene) -> None:
    async with (
        open_deaf_inventory(synced_scene.inventory) as other,
        run_in_background(running_sync(synced_scene)),
    ):
        await follow_unheard(synced_scene, other)


async def test_a_shop_whose_notice_was_lost_does_not_wait_for_busy_shops(synced_scene: SyncScene) -> None:
    busy = await synced_scene.inventory.create_shop()
    jars = await busy.create_pool(1_000_000)

    async def be_busy() -> None:
        while True:
            await busy.call("adjust_pool_quantity", pool_id=jars["id"], delta=-1)
            await asyncio.sleep(0.05)

    async with (
        open_deaf_inventory(synced_scene.inventory) as other,
        run_in_background(running_sync(synced_scene)),
        run_in_background(be_busy()),
    ):
        await follow_unheard(synced_scene, other)


async def test_levels_follow_while_the_listening_connection_is_cut_off(synced_scene: SyncScene) -> None:
    async with (
        run_in_background(running_sync(synced_scene)),
        cut_off_listener(synced_scene.inventory.database.url),
    ):
        await synced_scene.adjust(-1)
        await eventually(level(synced_scene, 49), row_work.POLL_SECONDS + SLACK_SECONDS)
