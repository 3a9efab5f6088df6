"""Recurring events: once an occurrence has passed, the next is created, an event of its own with the same fields.

Occurrences are counted from the first date, so that a series on the 31st goes through February and is back on the 31st
in March. Those that passed while nobody was looking are left out: the next one always lies ahead. A cancelled
occurrence is the last. Any number of processes may look; whoever locks the passed event first continues it, and a
unique key keeps it from being continued twice.
"""

import asyncio
import calendar
import datetime as dt
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from holdfast.events.events.model import Frequency
from holdfast.events.pricing.changes import begin
from holdfast.events.settings import Database, Tx

BATCH = 100
"""Occurrences created together."""

PATROL_SECONDS = 5.0
"""How often to look at least: events are created and moved at any time."""


async def run(database: Database) -> None:
    """Continue every series whose time has come, until cancelled."""
    while True:
        while await database.transact(continue_series):
            pass
        due = await database.read(next_to_continue)
        await asyncio.sleep(PATROL_SECONDS if due is None else min(max(due, 1.0), PATROL_SECONDS))


async def continue_series(tx: Tx, now: dt.datetime | None = None) -> int:
    """Create the next occurrences of the events that have passed; how many had passed.

    `now` is the database's clock unless given.
    """
    now = now or await tx.value("select clock_timestamp()")
    assert now
    passed = await lock_passed(tx, now)
    if not passed:
        return 0
    dates = {each.id: following(each.recurs_from, each.frequency, each.interval, now) for each in passed}
    await mark_continued(tx, list(dates), now)
    await begin(tx, await insert_occurrences(tx, {id: date for id, date in dates.items() if date}, now))
    return len(passed)


def following(start: dt.datetime, frequency: Frequency, interval: int, after: dt.datetime) -> dt.datetime | None:
    """The first date later than `after` of a series that began at `start`; None when the calendar ends before it.

    An interval of 0 counts as 1. In a month without the day, its last day stands in.
    """
    interval = max(1, interval)
    if frequency in {"days", "weeks"}:
        step = dt.timedelta(days=interval * (7 if frequency == "weeks" else 1))
        try:
            return start + step * max(1, (after - start) // step + 1)
        except OverflowError:
            return None
    months = interval * (12 if frequency == "years" else 1)
    apart = (after.year - start.year) * 12 + after.month - start.month
    steps = max(1, apart // months)
    date = months_later(start, steps * months)
    return date if date is None or date > after else months_later(start, (steps + 1) * months)


def months_later(start: dt.datetime, months: int) -> dt.datetime | None:
    """The same day so many months later, or the last of that month; None after the year 9999."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if year > dt.MAXYEAR:
        return None
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    return start.replace(year=year, month=month + 1, day=day)


class Passed(Struct):
    """An occurrence that has passed, and the series it belongs to."""

    id: int
    recurs_from: dt.datetime
    frequency: Frequency
    interval: int


async def lock_passed(tx: Tx, now: dt.datetime) -> list[Passed]:
    """Events that have passed and are to be continued, locked. Those somebody else is changing are left for later."""
    return await tx.rows(
        Passed,
        """
        select id, recurs_from, recurrence_frequency as frequency, recurrence_interval as interval from events
         where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null and datetime <= %(now)s
         order by datetime limit %(limit)s for no key update skip locked
        """,
        {"now": now, "limit": BATCH},
    )


async def mark_continued(tx: Tx, ids: list[int], now: dt.datetime) -> None:
    await tx.run("update events set continued_at = %(now)s where id = any(%(ids)s)", {"ids": ids, "now": now})


async def insert_occurrences(tx: Tx, dates: Mapping[int, dt.datetime], now: dt.datetime) -> list[int]:
    """The ids of new events like those given by id, each on its date."""
    rows = await tx.tuples(
        """
        insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                            price, min_price, max_price, current_price, recurrence_frequency, recurrence_interval,
                            recurs_from, address, location_name, latitude, longitude, image_keys, follows_id,
                            inserted_at)
        select organizer_id, title, body, next.datetime, capacity, waitinglist_capacity, currency, pricing_mode,
               price, min_price, max_price, case when pricing_mode <> 'free' then price end, recurrence_frequency,
               recurrence_interval, recurs_from, address, location_name, latitude, longitude, image_keys, events.id,
               %(now)s
          from json_to_recordset(%(next)s::json) as next (id bigint, datetime timestamptz) join events using (id)
         order by events.id
        returning id
        """,
        {
            "next": msgspec.json.encode([{"id": id, "datetime": date} for id, date in dates.items()]).decode(),
            "now": now,
        },
    )
    return [id for (id,) in rows]


async def next_to_continue(tx: Tx) -> float | None:
    """Seconds until the next event passes that is to be continued; None when there is none."""
    return await tx.value(
        """
        select extract(epoch from min(datetime) - clock_timestamp())::float8 from events
         where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null
        """
    )


async def occurrence_to_show(tx: Tx, event_id: int) -> int | None:
    """The event whose page a link to `event_id` leads to; None when there is no such event.

    While an event has not passed, that is itself. Later it is the first occurrence after it that has not passed, or was
    cancelled; or the last one there is.
    """
    return await tx.value(
        """
        with recursive line as (
            select id, 0 as place, cancelled_at is null and datetime <= now() as passed
              from events where id = %(id)s
            union all
            select next.id, place + 1, next.cancelled_at is null and next.datetime <= now()
              from line join events as next on next.follows_id = line.id
             where line.passed)
        select id from line order by place desc limit 1
        """,
        {"id": event_id},
    )
