"""Replays of past orders: begin one, read how far it is, and do it by tasks.

Orders are read from the platform page by page, the newest first, outside transactions. Each page is stored with the
cursor of the next one, so a task after a kill goes on behind it. Nothing is written to pools, and nothing to the shop.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from holdfast.inventory.catalog import pool_suggestions
from holdfast.inventory.catalog.pool_suggestions import SuggestPools
from holdfast.inventory.installs.operations import GetConnection, is_shop_connected
from holdfast.inventory.orders.model import Order
from holdfast.inventory.orders.reading import PastOrders, read_past_orders
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.replays import simulation
from holdfast.inventory.replays.model import (
    MAX_ORDERS,
    REPLAY,
    REPLAY_DAYS,
    BeginReplay,
    GetReplay,
    PastLine,
    PastOrder,
    Replay,
    ReplayedPool,
    ReplayResult,
    ReplayTask,
)
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shops.operations import announce_sync_status
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses


class RunningReplay(NamedTuple):
    """A replay that is under way.

    cursor    of the next page of orders; empty: the first one
    pages     how many pages are stored
    """

    replay_id: int
    since: datetime
    requested_at: datetime
    cursor: str
    pages: int
    read: int
    gone_lines: int
    pools: Sequence[ReplayedPool]


PAGES_PER_TASK = 5
"""The most pages that one task reads. The tasks of other shops come in between."""


@refuses(NOT_FOUND, SHOP_NOT_CONNECTED)
async def begin(tx: Tx, caller: Caller, command: BeginReplay) -> None:
    """Begin to replay past orders through suggested pools. A replay that is under way goes on instead."""
    if not await is_shop_connected(tx, caller, GetConnection()):
        raise SHOP_NOT_CONNECTED()
    suggested = await pool_suggestions.suggest_pools(tx, caller, SuggestPools(cursor=command.cursor))
    pools = [ReplayedPool(pool.name, pool.members) for pool in suggested.suggestions]
    if not pools:
        raise NOT_FOUND("No pool is suggested for the products of the shop.")
    if replay_id := await _insert_replay(tx, caller.tenant, pools):
        await announce_sync_status(tx, caller.tenant)
        await tx.enqueue(REPLAY, ReplayTask(caller.tenant, replay_id), tenant=caller.tenant)


async def get(reader: Reader, caller: Caller, command: GetReplay) -> Replay:
    """The last replay of the shop, how far it is, and its result."""
    replay = await reader.row(
        Replay,
        """
        select case when result is not null then 'done' when error is not null then 'failed' else 'running' end
                    as status, read, jsonb_array_length(pools) as pools, requested_at, error, result
          from replays where shop_id = %(shop_id)s
        """,
        {"shop_id": caller.tenant},
    )
    if replay is None:
        return Replay("none")
    replay.result = msgspec.convert(replay.result, ReplayResult | None, strict=False)
    return replay


async def advance(steps: Steps, task: ReplayTask) -> None:
    """Do the next step of a replay. May be called at any time, and twice."""
    try:
        for _ in range(PAGES_PER_TASK):
            running = await steps.read(partial(_find_running, shop_id=task.shop_id, replay_id=task.replay_id))
            if running is None or await _advance_by_page(steps, task, running):
                return
    except Problem as problem:
        await _store_error(steps, task, problem.message)
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
        return
    except (PlatformUnreachable, PlatformRefusal) as error:
        await _store_error(steps, task, str(error))
        raise
    await steps.transact(partial(_enqueue_next_step, task=task))


async def _advance_by_page(steps: Steps, task: ReplayTask, running: RunningReplay) -> bool:
    """Read and store a page of orders; after the last one, replay them all. Returns whether that was done."""
    page = await read_past_orders(steps, task.shop_id, running.since, running.requested_at, running.cursor)
    await steps.transact(partial(_store_page, task=task, running=running, page=page))
    read_count = running.read + len(page.orders)
    if page.cursor and read_count < MAX_ORDERS:
        return False
    orders = await steps.read(partial(_find_orders, shop_id=task.shop_id))
    result = await asyncio.to_thread(_result, running, orders, page, read_count)
    await steps.transact(partial(_finish, task=task, result=result))
    return True


def _result(running: RunningReplay, orders: Sequence[PastOrder], page: PastOrders, read_count: int) -> ReplayResult:
    is_cut = bool(page.cursor and page.orders)
    since = page.orders[-1].placed_at if is_cut else running.since
    return ReplayResult(
        since=since,
        until=running.requested_at,
        orders=read_count,
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


async def _store_page(tx: Tx, *, task: ReplayTask, running: RunningReplay, page: PastOrders) -> None:
    variant_gids = {member.variant.gid for pool in running.pools for member in pool.members}
    orders = [past for order in page.orders if (past := _past_order(order, variant_gids)).lines]
    gone_lines = _gone_lines(page.orders)
    await _insert_page(tx, task.shop_id, running, orders, len(page.orders), gone_lines, page.cursor)
    await announce_sync_status(tx, task.shop_id)


async def _finish(tx: Tx, *, task: ReplayTask, result: ReplayResult) -> None:
    await _store_result(tx, task.shop_id, task.replay_id, result)
    await announce_sync_status(tx, task.shop_id)


async def _enqueue_next_step(tx: Tx, *, task: ReplayTask) -> None:
    await tx.enqueue(REPLAY, task, tenant=task.shop_id)


async def _store_error(steps: Steps, task: ReplayTask, error: str) -> None:
    async def work(tx: Tx) -> None:
        await _set_error(tx, task.shop_id, task.replay_id, error)
        await announce_sync_status(tx, task.shop_id)

    await steps.transact(work)


async def _insert_replay(tx: Tx, shop_id: int, pools: Sequence[ReplayedPool]) -> int | None:
    """Store a new replay instead of any other that is not under way. Returns its id; None: one is under way."""
    replay_id = await tx.value(
        """
        insert into replays (shop_id, replay_id, since, pools)
        select %(shop_id)s, 1, clock_timestamp() - make_interval(days => %(days)s), %(pools)s::jsonb
            on conflict (shop_id) do update
           set replay_id = replays.replay_id + 1, requested_at = clock_timestamp(), since = excluded.since,
               pools = excluded.pools, cursor = '', pages = 0, read = 0, gone_lines = 0, result = null, error = null
         where replays.result is not null or replays.error is not null
        returning replay_id
        """,
        {"shop_id": shop_id, "days": REPLAY_DAYS, "pools": _json(pools)},
    )
    if replay_id is not None:
        await _delete_pages(tx, shop_id)
    return replay_id


async def _find_running(reader: Reader, shop_id: int, replay_id: int) -> RunningReplay | None:
    """A replay; None if it is done, or another one was begun."""
    rows = await reader.tuples(
        """
        select replay_id, since, requested_at, cursor, pages, read, gone_lines, pools
          from replays where shop_id = %(shop_id)s and replay_id = %(replay_id)s and result is null
        """,
        {"shop_id": shop_id, "replay_id": replay_id},
    )
    for *values, pools in rows:
        return RunningReplay(*values, pools=msgspec.convert(pools, list[ReplayedPool]))
    return None


async def _insert_page(
    tx: Tx,
    shop_id: int,
    running: RunningReplay,
    orders: Sequence[PastOrder],
    order_count: int,
    gone_lines: int,
    cursor: str,
) -> bool:
    """Store a page of orders and the cursor of the next one. Returns False if it is stored already.

    order_count   how many orders the page had
    gone_lines    how many of their lines were of variants that are no longer there
    """
    return bool(
        await tx.value(
            """
            with advanced as (
                update replays
                   set cursor = %(cursor)s, pages = pages + 1, read = read + %(order_count)s,
                       gone_lines = gone_lines + %(gone_lines)s, error = null
                 where shop_id = %(shop_id)s and replay_id = %(replay_id)s and pages = %(pages)s and result is null
                returning pages)
            insert into replay_pages (shop_id, number, orders)
            select %(shop_id)s, pages, %(orders)s::jsonb from advanced
            returning true
            """,
            {
                "shop_id": shop_id,
                "replay_id": running.replay_id,
                "pages": running.pages,
                "orders": _json(orders),
                "order_count": order_count,
                "gone_lines": gone_lines,
                "cursor": cursor,
            },
        )
    )


async def _find_orders(reader: Reader, shop_id: int) -> list[PastOrder]:
    """The orders that are stored for a replay."""
    rows = await reader.tuples(
        "select orders from replay_pages where shop_id = %(shop_id)s order by number", {"shop_id": shop_id}
    )
    return [order for (orders,) in rows for order in msgspec.convert(orders, list[PastOrder])]


async def _store_result(tx: Tx, shop_id: int, replay_id: int, result: ReplayResult) -> None:
    """Store the result of a replay, and delete the orders that were read for it."""
    await tx.run(
        """
        update replays set result = %(result)s::jsonb, error = null
         where shop_id = %(shop_id)s and replay_id = %(replay_id)s
        """,
        {"shop_id": shop_id, "replay_id": replay_id, "result": _json(result)},
    )
    await _delete_pages(tx, shop_id)


async def _set_error(tx: Tx, shop_id: int, replay_id: int, error: str) -> None:
    """Store why the last step of a replay failed."""
    await tx.run(
        """
        update replays set error = left(%(error)s, 1000)
         where shop_id = %(shop_id)s and replay_id = %(replay_id)s and result is null
        """,
        {"shop_id": shop_id, "replay_id": replay_id, "error": error},
    )


async def _delete_pages(tx: Tx, shop_id: int) -> None:
    await tx.run("delete from replay_pages where shop_id = %(shop_id)s", {"shop_id": shop_id})


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
