"""Statements on prices."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.pricing.model import FIRST_PRICE, PRICE, PriceChange, Reason
from holdfast.events.resources import Reader, Tx

NOW: LiteralString = "(select coalesce(%(now)s::timestamptz, clock_timestamp()) as now) as moment"
MOVES: LiteralString = (
    "events.pricing_mode = 'dynamic' and events.cancelled_at is null and events.published and events.datetime > now"
)
"""SQL condition: time changes the price. The price of a draft, or of a past or cancelled event, does not change."""


async def organizer_of(reader: Reader, event_id: int) -> int | None:
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


async def thin_price_changes(tx: Tx, limit: int) -> int:
    """Join changes of the same reason and hour, for events more than 30 days ago. Each event is handled once.

    Returns the number of events.
    """
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
        widened as (
            update price_changes set original_price = joined_run.original_price from joined_run
             where id = last_id and joined_run.original_price <> joined_run.new_price),
        -- A price that rose and fell again within the hour has not changed.
        deleted as (
            delete from price_changes using numbered_change join joined_run using (event_id, run)
             where price_changes.id = numbered_change.id
               and (numbered_change.id <> last_id or joined_run.original_price = joined_run.new_price)),
        thinned_event as (
            update events set prices_thinned_at = now() from past_event where events.id = past_event.id returning 1)
        select count(*) from thinned_event
        """,
        {"limit": limit},
    )


async def insert_first_prices(tx: Tx, event_ids: Sequence[int]) -> None:
    await tx.run(
        """
        insert into price_changes (event_id, reason, new_price)
        select id, 'init', coalesce(current_price, price) from events where id = any(%(event_ids)s) order by id
        """,
        {"event_ids": list(event_ids)},
    )


async def begin_again(tx: Tx, event_id: int) -> None:
    await tx.run(
        f"""
        with priced_event as (
            update events set current_price = {FIRST_PRICE} where id = %(event_id)s returning id, current_price, price),
        deleted as (
            delete from price_changes where event_id = %(event_id)s)
        insert into price_changes (event_id, reason, new_price)
        select id, 'init', coalesce(current_price, price) from priced_event
        """,
        {"event_id": event_id},
    )


async def lock_moved_prices(tx: Tx, now: dt.datetime | None, limit: int) -> list[int]:
    """Lock events whose price is out of date, and return their ids. Events that others lock are left out."""
    rows = await tx.tuples(
        f"""
        with moment as materialized (select * from {NOW})
        select events.id from events cross join moment
         where {MOVES} and events.current_price <> {PRICE}
         order by events.id limit %(limit)s for no key update of events skip locked
        """,
        {"now": now, "limit": limit},
    )
    return [id for (id,) in rows]


async def reprice(tx: Tx, event_ids: Sequence[int], reason: Reason, now: dt.datetime | None) -> None:
    """Set the current prices of locked events, and store an entry for each price that differs from its last entry."""
    await tx.run(
        f"""
        with priced as materialized (
            select events.id, events.current_price, last.new_price as recorded_price,
                   case when {MOVES} then {PRICE} else events.current_price end as new_price
              from events
             cross join {NOW}
             cross join lateral (select new_price from price_changes
                                  where event_id = events.id order by id desc limit 1) as last
             where events.id = any(%(event_ids)s) and events.current_price is not null),
        moved as (
            update events set current_price = priced.new_price from priced
             where events.id = priced.id and priced.current_price <> priced.new_price)
        insert into price_changes (event_id, reason, original_price, new_price)
        select id, %(reason)s, recorded_price, new_price from priced where recorded_price <> new_price order by id
        """,
        {"event_ids": list(event_ids), "reason": reason, "now": now},
    )
