"""A platform that answers badly, late or not at all, and access that ends in the middle: everything is counted once."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import ImportTask
from holdfast.inventory.settings import Settings
from holdfast.inventory.sync import levels
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.orders import LineReturn
from tests.helpers.platform_shop import DOMAIN, SECRET
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.orders.order_scene import OrderScene, catch_up_orders, open_order_scene
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop


@pytest.fixture
async def orders(settings: Settings) -> AsyncGenerator[OrderScene]:
    async with open_order_scene(settings) as scene:
        yield scene


@pytest.fixture
async def pool(settings: Settings) -> AsyncGenerator[SyncScene]:
    async with open_pooled_shop(settings) as scene:
        yield scene


@pytest.mark.parametrize("kind", ["before", "after", "down", "half", "shifted", "throttle"])
async def test_an_order_is_counted_once_whatever_happens_while_it_is_read(orders: OrderScene, kind: Any) -> None:
    order = orders.sell(*[(0, 1)] * 60)
    orders.platform.refund(DOMAIN, order.id, LineReturn(order.lines[0].id, 1))
    orders.platform.plan(Fault(kind, "query Order"))
    orders.platform.plan(Fault(kind, "query Order"))
    await orders.deliver(orders.pick("refunds/create"))
    for _ in range(2):
        await orders.inventory.sql("update webhooks set due_at = now() where handled_at is null")
        await handle(orders.inventory)

    assert await orders.left() == 50 - 59


async def test_orders_are_found_once_though_the_pages_of_the_list_move(orders: OrderScene) -> None:
    for _ in range(60):
        orders.sell((0, 1))
    orders.platform.plan(Fault("shifted", "query Orders", times=2))

    await catch_up_orders(orders)
    assert await orders.left() == 50 - 60
    assert await catch_up_orders(orders) == 0


async def test_an_order_received_a_week_late_and_after_a_newer_state_is_counted_once(orders: OrderScene) -> None:
    order = orders.sell((1, 1))
    late = orders.pick("orders/create")
    orders.platform.clock.advance(7 * 86_400)
    orders.platform.cancel(DOMAIN, order.id)
    newer = orders.pick("orders/updated")

    await orders.deliver(newer, late)
    assert await orders.left() == 50
    orders.sell((1, 1))
    await orders.deliver(orders.pick("orders/create"), late)
    assert await orders.left() == 44


async def test_stale_levels_are_read_again(pool: SyncScene) -> None:
    pool.count("Single", 48)
    pool.platform.plan(Fault("stale", "ReadLevels"))
    await pool.adjust(-6)
    for _ in range(3):
        await pool.sync_due()
        await pool.end_push_pause()

    assert pool.levels() == (42, 7, 3)
    await pool.end_grace_and_sync()
    assert await pool.shop.on_hand(pool.pool_id) == 42
    assert pool.levels() == (42, 7, 3)


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_an_uninstall_in_the_middle_of_a_push_ends_it_until_the_app_is_there_again(
    pool: SyncScene, kind: Any
) -> None:
    pool.platform.plan(Fault(kind, "SetLevels"))
    await pool.adjust(-6)
    await pool.sync_due()
    pool.platform.uninstall(DOMAIN)
    body = {"myshopify_domain": DOMAIN}
    await deliver(pool.shop, "app/uninstalled", body, secret=SECRET.encode())
    await handle(pool.inventory)
    before = pool.levels()
    await pool.inventory.sql("update syncs set leased_until = null")
    assert await pool.sync_due() == 0
    assert pool.levels() == before

    await pool.installing.install()
    await pool.transact(lambda tx: levels.request_sync(tx, pool.shop.id))
    for _ in range(3):
        await pool.sync_due()
        await pool.end_push_pause()

    assert pool.levels() == (44, 7, 3)
    assert await pool.inventory.sql("select count(*) from pushes") == [(0,)]


async def test_an_import_whose_access_is_withdrawn_in_the_middle_says_so_and_is_done_after_the_next_install(
    pool: SyncScene,
) -> None:
    await pool.inventory.database.transact(lambda tx: importing.begin(tx, pool.shop.id))
    await importing.advance_import(pool.steps, ImportTask(pool.shop.id, 2))
    pool.platform.oauth.revoke(DOMAIN)
    await importing.advance_import(pool.steps, ImportTask(pool.shop.id, 2))

    imported = (await pool.shop.call("get_sync_status"))["imported"]
    assert imported["status"] == "running"
    assert "must be connected again" in imported["error"]
    await pool.installing.install()
    await pool.finish_import()
    assert (await pool.shop.call("get_sync_status"))["imported"]["error"] is None
