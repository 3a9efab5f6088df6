"""Expired holds are ended by whichever process finds them first, a shop at a time.

A shop in which somebody else has locked something is left to a waiter, and does not delay other shops.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

import structlog
from psycopg.errors import LockNotAvailable

from holdfast.inventory.resources import Database, Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.book import HOLDS
from holdfast.inventory.stock.model import ReleaseHold, StockChange
from holdfast.inventory.stock.operations import end_holds
from holdfast.kit.caller import system
from holdfast.kit.modes import Batch, Call
from holdfast.kit.notifications import notified
from holdfast.kit.waiters import Waiters

log = structlog.get_logger()

BATCH = 100
"""Holds of one shop that end together."""

PATROL_SECONDS = 5.0
"""Seconds after which expired holds are looked for anyway, in case a notification was lost with a connection."""

RETRY_SECONDS = 1.0
"""Seconds after which holds that could not be ended are tried again."""

PATIENCE = "10ms"
"""How long to wait for what others have locked in a shop before the other shops are handled."""


async def run(database: Database) -> None:
    """End holds when they expire, until cancelled."""
    taken = asyncio.Event()
    with database.listen(HOLDS, lambda _: taken.set()):
        async with Waiters(taken.set) as waiters:
            while True:
                taken.clear()
                await expire(database, waiters)
                await notified(taken, pause(await database.read(partial(sql.next_expiry, but=waiters.rows))))


def pause(next_expiry: float | None) -> float:
    """Seconds to wait when the next hold expires in so many. One that is overdue could not be ended just now."""
    if next_expiry is None:
        return PATROL_SECONDS
    return min(next_expiry, PATROL_SECONDS) if next_expiry > 0 else RETRY_SECONDS


async def expire(database: Database, waiters: Waiters | None = None) -> int:
    """End every expired hold, and leave locked shops to the waiters. Returns how many were ended.

    A shop whose holds cannot be ended does not delay other shops.
    """
    total, postponed = 0, set(waiters.rows if waiters else ())
    while due := {shop_id: ids for shop_id, ids in (await database.read(_due)).items() if shop_id not in postponed}:
        for shop_id, ids in due.items():
            ended = await _end_free(database, shop_id, ids)
            if ended is None and waiters:
                waiters.leave(shop_id, partial(_end, database, shop_id, ids))
            ended = ended or 0
            total += ended
            if ended < len(ids):
                # Another process ended them, or something is wrong: they are not tried again at once.
                postponed.add(shop_id)
    return total


async def _due(reader: Reader) -> Mapping[int, list[int]]:
    return await sql.expired_holds(reader, BATCH)


async def _end_free(database: Database, shop_id: int, ids: list[int]) -> int | None:
    """End holds of a shop; returns how many. None: somebody else has locked the shop, a pool or a hold."""
    try:
        return await _end(database, shop_id, ids, patience=PATIENCE)
    except Exception as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return None
        log.error("the holds of a shop could not be ended", shop=shop_id, exc_info=error)
        return 0


async def _end(database: Database, shop_id: int, ids: list[int], patience: str | None = None) -> int:
    async def work(tx: Tx) -> int:
        if patience:
            await tx.run("select set_config('lock_timeout', %(patience)s, true)", {"patience": patience})
        return await _end_holds(tx, shop_id, ids)

    return await database.transact(work, shop_id)


async def _end_holds(tx: Tx, shop_id: int, ids: list[int]) -> int:
    caller = system(shop_id)
    calls = [Call(caller, ReleaseHold(hold_id=id, reason="The hold expired.")) for id in ids]
    answers = await end_holds(tx, Batch(shop_id, calls), "hold expiry")
    return sum(isinstance(answer, StockChange) for answer in answers)
