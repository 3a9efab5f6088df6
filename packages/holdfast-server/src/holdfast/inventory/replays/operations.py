"""Replays of past orders: begin one, read how far it is, and do it by tasks.

Orders are read from the platform page by page, the newest first, outside transactions. Each page is stored with the
cursor of the next one, so a task after a kill goes on behind it. Nothing is written to pools, and nothing to the shop.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

from holdfast.inventory.catalog import importing, pool_suggestions
from holdfast.inventory.catalog.pool_suggestions import SuggestPools
from holdfast.inventory.orders.model import Order
from holdfast.inventory.orders.past_orders import PastOrders, read_past_orders
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.replays import simulation, sql
from holdfast.inventory.replays.model import (
    MAX_ORDERS,
    REPLAY,
    BeginReplay,
    GetReplay,
    PastLine,
    PastOrder,
    Replay,
    ReplayedPool,
    ReplayResult,
    ReplayTask,
)
from holdfast.inventory.replays.sql import RunningReplay
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shops.operations import announce_sync_status
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses

PAGES_PER_TASK = 5
"""The most pages that one task reads. The tasks of other shops come in between."""


@refuses(NOT_FOUND, SHOP_NOT_CONNECTED)
async def begin(tx: Tx, caller: Caller, command: BeginReplay) -> None:
    """Begin to replay past orders through suggested pools. A replay that is under way goes on instead."""
    if await importing.find_obstacle(tx, caller.tenant) == "not_connected":
        raise SHOP_NOT_CONNECTED()
    suggested = await pool_suggestions.suggest_pools(tx, caller, SuggestPools(cursor=command.cursor))
    pools = [ReplayedPool(pool.name, pool.members) for pool in suggested.suggestions]
    if not pools:
        raise NOT_FOUND("No pool is suggested for the products of the shop.")
    if replay_id := await sql.insert(tx, caller.tenant, pools):
        await announce_sync_status(tx, caller.tenant)
        await tx.enqueue(REPLAY, ReplayTask(caller.tenant, replay_id), tenant=caller.tenant)


async def get(reader: Reader, caller: Caller, command: GetReplay) -> Replay:
    """The last replay of the shop, how far it is, and its result."""
    return await sql.find(reader, caller.tenant)


async def advance(steps: Steps, of: ReplayTask) -> None:
    """Do the next step of a replay. May be called at any time, and twice."""
    try:
        for _ in range(PAGES_PER_TASK):
            running = await steps.read(partial(sql.find_running, shop_id=of.shop_id, replay_id=of.replay_id))
            if running is None or await _advance(steps, of, running):
                return
    except Problem as problem:
        await _store_error(steps, of, problem.message)
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
        return
    except (PlatformUnreachable, PlatformRefusal) as error:
        await _store_error(steps, of, str(error))
        raise
    await steps.transact(partial(_go_on, of=of))


async def _advance(steps: Steps, of: ReplayTask, running: RunningReplay) -> bool:
    """Read and store a page of orders; after the last one, replay them all. Returns whether that was done."""
    page = await read_past_orders(steps, of.shop_id, running.since, running.requested_at, running.cursor)
    await steps.transact(partial(_store_page, of=of, running=running, page=page))
    read = running.read + len(page.orders)
    if page.cursor and read < MAX_ORDERS:
        return False
    orders = await steps.read(partial(sql.find_orders, shop_id=of.shop_id))
    result = await asyncio.to_thread(_result, running, orders, page, read)
    await steps.transact(partial(_finish, of=of, result=result))
    return True


def _result(running: RunningReplay, orders: Sequence[PastOrder], page: PastOrders, read: int) -> ReplayResult:
    is_cut = bool(page.cursor and page.orders)
    since = page.orders[-1].placed_at if is_cut else running.since
    return ReplayResult(
        since=since,
        until=running.requested_at,
        orders=read,
        is_cut=is_cut,
        gone_lines=running.gone_lines + _gone_lines(page.orders),
        pools=[simulation.replay(pool, orders, since, running.requested_at) for pool in running.pools],
    )


def _past_order(order: Order, variant_gids: Collection[str]) -> PastOrder:
    """An order, with those of its lines that are of these variants."""
    lines = [
        PastLine(line.id, line.variant_gid, line.taken)
        for line in order.lines
        if line.variant_gid and line.variant_gid in variant_gids and line.taken
    ]
    return PastOrder(order.id, order.name, order.placed_at, lines)


def _gone_lines(orders: Sequence[Order]) -> int:
    return sum(line.variant_gid is None and line.taken > 0 for order in orders for line in order.lines)


async def _store_page(tx: Tx, *, of: ReplayTask, running: RunningReplay, page: PastOrders) -> None:
    variant_gids = {member.variant.gid for pool in running.pools for member in pool.members}
    orders = [past for order in page.orders if (past := _past_order(order, variant_gids)).lines]
    gone_lines = _gone_lines(page.orders)
    await sql.store_page(tx, of.shop_id, running, orders, len(page.orders), gone_lines, page.cursor)
    await announce_sync_status(tx, of.shop_id)


async def _finish(tx: Tx, *, of: ReplayTask, result: ReplayResult) -> None:
    await sql.finish(tx, of.shop_id, of.replay_id, result)
    await announce_sync_status(tx, of.shop_id)


async def _go_on(tx: Tx, *, of: ReplayTask) -> None:
    await tx.enqueue(REPLAY, of, tenant=of.shop_id)


async def _store_error(steps: Steps, of: ReplayTask, error: str) -> None:
    async def work(tx: Tx) -> None:
        await sql.store_error(tx, of.shop_id, of.replay_id, error)
        await announce_sync_status(tx, of.shop_id)

    await steps.transact(work)
