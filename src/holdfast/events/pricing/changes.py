"""How prices change: one entry in the history for each change, in the transaction that made it."""

import datetime as dt
from collections.abc import Sequence

from holdfast.events.pricing import sql
from holdfast.events.pricing.model import Reason
from holdfast.events.settings import Tx

MOST = 10_000
"""Prices that move in one tick; after a long rest the others follow with the next ones."""


async def begin(tx: Tx, event_ids: Sequence[int]) -> None:
    """Open the histories of new events with the price they begin at."""
    await sql.insert_first_prices(tx, event_ids)


async def reprice(tx: Tx, event_ids: Sequence[int], reason: Reason, now: dt.datetime | None = None) -> None:
    """Bring the current prices of events up to date, and into their histories where they changed.

    The caller has locked the events, and done what moves their prices. `now` is the database's clock unless given.
    """
    await sql.reprice(tx, event_ids, reason, now)


async def tick(tx: Tx, now: dt.datetime | None = None, *, most: int = MOST) -> int:
    """Bring the prices up to date that time has moved since; how many."""
    moved = await sql.lock_moved_prices(tx, now, most)
    if moved:
        await sql.reprice(tx, moved, "tick", now)
    return len(moved)
