"""Statements on replays."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from holdfast.inventory.replays.model import REPLAY_DAYS, PastOrder, Replay, ReplayedPool, ReplayResult
from holdfast.inventory.resources import Reader, Tx


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


async def insert(tx: Tx, shop_id: int, pools: Sequence[ReplayedPool]) -> int | None:
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


async def find(reader: Reader, shop_id: int) -> Replay:
    """The last replay of a shop."""
    rows = await reader.tuples(
        """
        select case when result is not null then 'done' when error is not null then 'failed' else 'running' end,
               read, jsonb_array_length(pools), requested_at, error, result
          from replays where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )
    for status, read, pools, requested_at, error, result in rows:
        stored = None if result is None else msgspec.convert(result, ReplayResult, strict=False)
        return Replay(status, read, pools, requested_at, error, stored)
    return Replay("none")


async def find_running(reader: Reader, shop_id: int, replay_id: int) -> RunningReplay | None:
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


async def store_page(
    tx: Tx, shop_id: int, running: RunningReplay, orders: Sequence[PastOrder], read: int, gone_lines: int, cursor: str
) -> bool:
    """Store a page of orders and the cursor of the next one. Returns False if it is stored already.

    read          how many orders the page had
    gone_lines    how many of their lines were of variants that are no longer there
    """
    return bool(
        await tx.value(
            """
            with advanced as (
                update replays
                   set cursor = %(cursor)s, pages = pages + 1, read = read + %(read)s,
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
                "read": read,
                "gone_lines": gone_lines,
                "cursor": cursor,
            },
        )
    )


async def find_orders(reader: Reader, shop_id: int) -> list[PastOrder]:
    """The orders that are stored for a replay."""
    rows = await reader.tuples(
        "select orders from replay_pages where shop_id = %(shop_id)s order by number", {"shop_id": shop_id}
    )
    return [order for (orders,) in rows for order in msgspec.convert(orders, list[PastOrder])]


async def finish(tx: Tx, shop_id: int, replay_id: int, result: ReplayResult) -> None:
    """Store the result of a replay, and delete the orders that were read for it."""
    await tx.run(
        """
        update replays set result = %(result)s::jsonb, error = null
         where shop_id = %(shop_id)s and replay_id = %(replay_id)s
        """,
        {"shop_id": shop_id, "replay_id": replay_id, "result": _json(result)},
    )
    await _delete_pages(tx, shop_id)


async def store_error(tx: Tx, shop_id: int, replay_id: int, error: str) -> None:
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
