"""The operations on prices. Each change gets one entry in the price history, in the transaction that made it.

Histories of events that took place more than 30 days ago are thinned. Changes that follow each other within an hour for
the same reason, by time (`tick`) or by registrations, are joined to one: it goes from the price before the first of
them to the price after the last. So each change still begins with the price at which the one before it ended. The first
price, and every change that an organizer made, stay as they are.
"""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.pricing.model import FIRST_PRICE, PRICE, ListPriceHistory, PriceChange, PricePoint, Reason
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses

MAX_PRICE_POINTS = 1_000
"""The most prices of an event that its pages read: the latest ones."""

MAX_PRICES_PER_TICK = 10_000
"""The most prices that one tick changes. The next ticks change the others."""

THIN_BATCH_SIZE = 50
"""Events whose histories are thinned in one transaction."""

_MOMENT: LiteralString = "(select coalesce(%(now)s::timestamptz, clock_timestamp()) as now) as moment"
"""SQL for a row `moment`, whose column `now` is the time at which prices are computed."""

_CHANGES_WITH_TIME: LiteralString = (
    "events.pricing_mode = 'dynamic' and events.cancelled_at is null and events.published and events.datetime > now"
)
"""SQL condition: time changes the price. The price of a draft, or of a past or cancelled event, does not change."""


@refuses(NOT_FOUND, FORBIDDEN)
async def history(reader: Reader, caller: Caller, command: ListPriceHistory) -> list[PriceChange]:
    """List the prices of an event, newest first."""
    organizer_id = await _find_organizer(reader, command.event_id)
    if organizer_id is None:
        raise NOT_FOUND(f"No event has the id {command.event_id}.")
    if not caller.may_access(organizer_id):
        raise FORBIDDEN(f"Event {command.event_id} belongs to another organizer.")
    return await list_price_changes(reader, command.event_id)


async def _find_organizer(reader: Reader, event_id: int) -> int | None:
    return await reader.value("select organizer_id from events where id = %(id)s", {"id": event_id})


async def list_price_changes(reader: Reader, event_id: int) -> list[PriceChange]:
    return await reader.rows(
        PriceChange,
        """
        select id, reason, "timestamp", event_id, original_price, new_price
          from price_changes where event_id = %(event_id)s order by id desc
        """,
        {"event_id": event_id},
    )


async def list_price_points(reader: Reader, event_ids: Sequence[int]) -> dict[int, list[PricePoint]]:
    """The last prices of events, oldest first, by event: at most MAX_PRICE_POINTS of each."""
    rows = await reader.tuples(
        """
        select event_id, "timestamp", price
          from unnest(%(event_ids)s::bigint[]) as requested (event_id)
         cross join lateral (select id, "timestamp", new_price as price from price_changes
                              where event_id = requested.event_id order by id desc limit %(limit)s) as last
         order by id
        """,
        {"event_ids": list(event_ids), "limit": MAX_PRICE_POINTS},
    )
    prices: dict[int, list[PricePoint]] = {id: [] for id in event_ids}
    for event_id, timestamp, price in rows:
        prices[event_id].append(PricePoint(timestamp, price))
    return prices


async def record_first_prices(tx: Tx, event_ids: Sequence[int]) -> None:
    """Store the first entry in the price histories of new events: the initial price."""
    await tx.run(
        """
        insert into price_changes (event_id, reason, new_price)
        select id, 'init', coalesce(current_price, price) from events where id = any(%(event_ids)s) order by id
        """,
        {"event_ids": list(event_ids)},
    )


async def begin_again(tx: Tx, event_id: int) -> None:
    """Set the price of an event to its first one, and begin its price history again with that.

    The caller has locked the event, and has no registration: it is a draft, or is published now.
    """
    await tx.run(
        f"""
        with priced_event as (
            update events set current_price = {FIRST_PRICE} where id = %(event_id)s returning id, current_price, price),
        deleted_change as (
            delete from price_changes where event_id = %(event_id)s)
        insert into price_changes (event_id, reason, new_price)
        select id, 'init', coalesce(current_price, price) from priced_event
        """,
        {"event_id": event_id},
    )


async def reprice(tx: Tx, event_ids: Sequence[int], reason: Reason, now: dt.datetime | None = None) -> None:
    """Compute the current prices of events again. A price that changed gets an entry in the price history.

    The caller has locked the events and has made the changes that affect their prices. `now` is the database's clock
    unless given.
    """
    await tx.run(
        f"""
        with priced_event as materialized (
            select events.id, events.current_price, last.new_price as recorded_price,
                   case when {_CHANGES_WITH_TIME} then {PRICE} else events.current_price end as new_price
              from events
             cross join {_MOMENT}
             cross join lateral (select new_price from price_changes
                                  where event_id = events.id order by id desc limit 1) as last
             where events.id = any(%(event_ids)s) and events.current_price is not null),
        changed_event as (
            update events set current_price = priced_event.new_price from priced_event
             where events.id = priced_event.id and priced_event.current_price <> priced_event.new_price)
        insert into price_changes (event_id, reason, original_price, new_price)
        select id, %(reason)s, recorded_price, new_price from priced_event where recorded_price <> new_price order by id
        """,
        {"event_ids": list(event_ids), "reason": reason, "now": now},
    )


async def update_prices(tx: Tx, now: dt.datetime | None = None, *, limit: int = MAX_PRICES_PER_TICK) -> int:
    """Update the prices that have changed because time has passed. Returns the number of changed prices."""
    event_ids = await _lock_outdated_prices(tx, now, limit)
    if event_ids:
        await reprice(tx, event_ids, "tick", now)
    return len(event_ids)


async def _lock_outdated_prices(tx: Tx, now: dt.datetime | None, limit: int) -> list[int]:
    """Lock events whose price is out of date, and return their ids. Events that others lock are left out."""
    rows = await tx.tuples(
        f"""
        with moment as materialized (select * from {_MOMENT})
        select events.id from events cross join moment
         where {_CHANGES_WITH_TIME} and events.current_price <> {PRICE}
         order by events.id limit %(limit)s for no key update of events skip locked
        """,
        {"now": now, "limit": limit},
    )
    return [id for (id,) in rows]


async def thin_histories(tx: Tx) -> int:
    """Thin the histories of a batch of events. Returns the number of events."""
    return await tx.value(
        """
        with past_event as (
            select id from events
             where pricing_mode = 'dynamic' and prices_thinned_at is null and datetime < now() - interval '30 days'
             order by datetime limit %(limit)s for no key update skip locked),
        neighbours as (
            select price_changes.*, lag(reason) over history as reason_before,
                   lag("timestamp") over history as timestamp_before
              from price_changes join past_event on past_event.id = event_id
            window history as (partition by event_id order by price_changes.id)),
        numbered_change as (
            select *, count(*) filter (where reason not in ('tick', 'registration')
                                          or reason is distinct from reason_before
                                          or date_trunc('hour', "timestamp") <> date_trunc('hour', timestamp_before))
                      over (partition by event_id order by id) as run
              from neighbours),
        joined_run as (
            select event_id, run, max(id) as last_id, (array_agg(original_price order by id))[1] as original_price,
                   (array_agg(new_price order by id desc))[1] as new_price
              from numbered_change group by event_id, run having count(*) > 1),
        widened_change as (
            update price_changes set original_price = joined_run.original_price from joined_run
             where id = last_id and joined_run.original_price <> joined_run.new_price),
        -- A price that rose and fell again within the hour has not changed.
        deleted_change as (
            delete from price_changes using numbered_change join joined_run using (event_id, run)
             where price_changes.id = numbered_change.id
               and (numbered_change.id <> last_id or joined_run.original_price = joined_run.new_price)),
        thinned_event as (
            update events set prices_thinned_at = now() from past_event where events.id = past_event.id returning 1)
        select count(*) from thinned_event
        """,
        {"limit": THIN_BATCH_SIZE},
    )
