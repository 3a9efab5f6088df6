"""The operations on prices. Each change gets one entry in the price history, in the transaction that made it.

Histories of events that took place more than 30 days ago are thinned. Changes that follow each other within an hour for
the same reason, by time (`tick`) or by registrations, are joined to one: it goes from the price before the first of
them to the price after the last. So each change still begins with the price at which the one before it ended. The first
price, and every change that an organizer made, stay as they are.
"""

import datetime as dt
from collections.abc import Sequence

from holdfast.events.pricing import sql
from holdfast.events.pricing.model import ListPriceHistory, PriceChange, Reason
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses


@refuses(NOT_FOUND, FORBIDDEN)
async def history(reader: Reader, caller: Caller, command: ListPriceHistory) -> list[PriceChange]:
    """List every change of an event's price, newest first."""
    organizer_id = await sql.organizer_of(reader, command.event_id)
    if organizer_id is None:
        raise NOT_FOUND(f"No event has the id {command.event_id}.")
    if not caller.may_access(organizer_id):
        raise FORBIDDEN(f"Event {command.event_id} belongs to another organizer.")
    return await sql.list_price_changes(reader, command.event_id)


MAX_PRICES_PER_TICK = 10_000
"""The most prices that one tick changes. The next ticks change the others."""


async def record_first_prices(tx: Tx, event_ids: Sequence[int]) -> None:
    """Store the first entry in the price histories of new events: the initial price."""
    await sql.insert_first_prices(tx, event_ids)


async def begin_again(tx: Tx, event_id: int) -> None:
    """Set the price of an event to its first one, and begin its price history again with that.

    The caller has locked the event, and has no registration: it is a draft, or is published now.
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


THIN_BATCH_SIZE = 50
"""Events whose histories are thinned in one transaction."""


async def thin_histories(tx: Tx) -> int:
    """Thin the histories of a batch of events. Returns the number of events."""
    return await sql.thin_price_changes(tx, THIN_BATCH_SIZE)
