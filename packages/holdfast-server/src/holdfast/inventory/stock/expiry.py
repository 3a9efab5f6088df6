"""Ends expired holds, one shop at a time. Any process may do it.

A shop in which another transaction holds a lock is left to a waiter, and does not delay other shops.
"""

from collections.abc import Mapping
from functools import partial

import structlog
from psycopg.errors import LockNotAvailable

from holdfast.inventory.resources import Database, Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.model import ReleaseHold, StockChange
from holdfast.inventory.stock.operations import end_holds
from holdfast.inventory.stock.stock_changes import HOLDS_CHANNEL
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.contract.caller import system
from holdfast.kit.operations.operation import Batch, Call
from holdfast.kit.postgres.notifications import POLL_SECONDS

log = structlog.get_logger()

EXPIRY_BATCH_SIZE = 100
"""The most holds of one shop that end in one transaction."""

RETRY_SECONDS = 1.0
"""Seconds after which holds that could not be ended are tried again."""

LOCK_TIMEOUT = "10ms"
"""How long to wait for a lock in one shop before the next shop is handled."""


async def end_expired(database: Database, row_waiters: RowWaiters) -> float:
    """End the holds that have expired. Returns the seconds until the next ones do."""
    await expire(database, row_waiters)
    return pause(await database.read(partial(sql.seconds_until_expiry, excluded_ids=row_waiters.ids)))


LOOP = Loop("expiry.run", end_expired, (HOLDS_CHANNEL,))


def pause(seconds_until_expiry: float | None) -> float:
    """The seconds to wait until the next hold expires. An overdue one could not be ended, and is retried."""
    if seconds_until_expiry is None:
        return POLL_SECONDS
    return min(seconds_until_expiry, POLL_SECONDS) if seconds_until_expiry > 0 else RETRY_SECONDS


async def expire(database: Database, row_waiters: RowWaiters | None = None) -> int:
    """End every expired hold, and leave locked shops to the waiters. Returns how many ended.

    A shop whose holds cannot be ended does not delay other shops.
    """
    total, postponed = 0, set(row_waiters.ids if row_waiters else ())
    while due := {
        shop_id: ids for shop_id, ids in (await database.read(_list_due)).items() if shop_id not in postponed
    }:
        for shop_id, ids in due.items():
            ended_count = await _end_unless_locked(database, shop_id, ids)
            if ended_count is None and row_waiters:
                row_waiters.leave(shop_id, partial(_end, database, shop_id, ids))
            ended_count = ended_count or 0
            total += ended_count
            if ended_count < len(ids):
                # Another process ended them, or something is wrong: they are not tried again at once.
                postponed.add(shop_id)
    return total


async def _list_due(reader: Reader) -> Mapping[int, list[int]]:
    return await sql.list_expired_holds(reader, EXPIRY_BATCH_SIZE)


async def _end_unless_locked(database: Database, shop_id: int, ids: list[int]) -> int | None:
    """End holds of a shop. Returns how many; None if another transaction has locked the shop, a pool or a hold."""
    try:
        return await _end(database, shop_id, ids, lock_timeout=LOCK_TIMEOUT)
    except Exception as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return None
        log.error("the holds of a shop could not be ended", shop=shop_id, exc_info=error)
        return 0


async def _end(database: Database, shop_id: int, ids: list[int], lock_timeout: str | None = None) -> int:
    async def work(tx: Tx) -> int:
        if lock_timeout:
            await tx.run("select set_config('lock_timeout', %(lock_timeout)s, true)", {"lock_timeout": lock_timeout})
        return await _end_holds(tx, shop_id, ids)

    return await database.transact(work, shop_id)


async def _end_holds(tx: Tx, shop_id: int, ids: list[int]) -> int:
    caller = system(shop_id)
    calls = [Call(caller, ReleaseHold(hold_id=id, reason="The hold expired.")) for id in ids]
    answers = await end_holds(tx, Batch(shop_id, calls), "hold expiry")
    return sum(isinstance(answer, StockChange) for answer in answers)
