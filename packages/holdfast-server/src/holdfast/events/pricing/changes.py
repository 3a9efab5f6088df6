"""Price changes: each gets one entry in the price history, in the transaction that made it."""

import datetime as dt
from collections.abc import Sequence

from holdfast.events.pricing import sql
from holdfast.events.pricing.model import Reason
from holdfast.events.resources import Tx

MAX_PRICES_PER_TICK = 10_000
"""The most prices that one tick changes. The next ticks change the others."""


async def record_first_prices(tx: Tx, event_ids: Sequence[int]) -> None:
    """Store the first entry in the price histories of new events: the initial price."""
    await sql.insert_first_prices(tx, event_ids)


async def begin_again(tx: Tx, event_id: int) -> None:
    """Set the price of an event to its first one, and begin its price history anew with that.

    The caller has locked the event, and nobody has registered for it: it is a draft, or is published now.
    """
    await sql.begin_again(tx, event_id)


async def reprice(tx: Tx, event_ids: Sequence[int], reason: Reason, now: dt.datetime | None = None) -> None:
    """Compute the current prices of events again. A price that changed gets an entry in the price history.

    The caller has locked the events and has made the changes that affect their prices. `now` is the database's clock
    unless given.
    """
    await sql.reprice(tx, event_ids, reason, now)


async def tick(tx: Tx, now: dt.datetime | None = None, *, most: int = MAX_PRICES_PER_TICK) -> int:
    """Update the prices that have changed because time has passed. Returns the number of changed prices."""
    moved = await sql.lock_moved_prices(tx, now, most)
    if moved:
        await sql.reprice(tx, moved, "tick", now)
    return len(moved)
