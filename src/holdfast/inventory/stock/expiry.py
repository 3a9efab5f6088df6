"""Expired holds are ended by whichever process finds them first, a shop at a time."""

import asyncio
import contextlib
from collections.abc import Mapping

import structlog

from holdfast.inventory.resources import Database, Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.book import HOLDS
from holdfast.inventory.stock.model import ReleaseHold, StockChange
from holdfast.inventory.stock.operations import end_holds
from holdfast.kit.caller import system
from holdfast.kit.modes import Batch, Call

log = structlog.get_logger()

BATCH = 100
"""Holds of one shop that end together."""

PATROL_SECONDS = 5.0
"""Seconds after which expired holds are looked for anyway, in case a notification was lost with a connection."""

RETRY_SECONDS = 1.0
"""Seconds after which holds that could not be ended are tried again."""


async def run(database: Database) -> None:
    """End holds when they expire, until cancelled."""
    taken = asyncio.Event()
    with database.listen(HOLDS, lambda _: taken.set()):
        while True:
            taken.clear()
            await expire(database)
            wait = pause(await database.read(sql.next_expiry))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(taken.wait(), wait)


def pause(next_expiry: float | None) -> float:
    """Seconds to wait when the next hold expires in so many. One that is overdue could not be ended just now."""
    if next_expiry is None:
        return PATROL_SECONDS
    return min(next_expiry, PATROL_SECONDS) if next_expiry > 0 else RETRY_SECONDS


async def expire(database: Database) -> int:
    """End every expired hold; returns how many. A shop whose holds cannot be ended does not delay other shops."""
    total, postponed = 0, set[int]()
    while due := {shop_id: ids for shop_id, ids in (await database.read(_due)).items() if shop_id not in postponed}:
        for shop_id, ids in due.items():
            try:
                ended = await database.transact(lambda tx, shop=shop_id, ids=ids: _end(tx, shop, ids), shop_id)
            except Exception as error:
                log.error("the holds of a shop could not be ended", shop=shop_id, exc_info=error)
                ended = 0
            total += ended
            if ended < len(ids):
                # Another process ended them, or something is wrong: they are not tried again at once.
                postponed.add(shop_id)
    return total


async def _due(reader: Reader) -> Mapping[int, list[int]]:
    return await sql.expired_holds(reader, BATCH)


async def _end(tx: Tx, shop_id: int, ids: list[int]) -> int:
    caller = system(shop_id)
    calls = [Call(caller, ReleaseHold(hold_id=id, reason="The hold expired.")) for id in ids]
    answers = await end_holds(tx, Batch(shop_id, calls), "hold expiry")
    return sum(isinstance(answer, StockChange) for answer in answers)
