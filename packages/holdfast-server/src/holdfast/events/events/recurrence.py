"""Recurring events: after an occurrence has taken place, the next one is created as a new event with equal fields.

Dates are computed from the first date, in the local time of the event's time zone: a series on the 31st takes place on
February 28th, and on the 31st again in March. Occurrences that were due while no process ran are left out: the next one
is always in the future. A cancelled occurrence is the last one. Any number of processes may run this. The process that
locks the passed event first creates the next one, and a unique key prevents a second one.
"""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

import msgspec
from dateutil.relativedelta import relativedelta
from msgspec import Struct

from holdfast.events.events.model import Frequency, is_in_order, is_public, moved_end
from holdfast.events.events.time_zones import zone
from holdfast.events.pricing.model import FIRST_PRICE
from holdfast.events.pricing.operations import record_first_prices
from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.background.loops import Loop, RowWaiters

OCCURRENCE_BATCH_SIZE = 100
"""The most occurrences that one transaction creates."""

POLL_SECONDS = 5.0
"""The most seconds between two checks: events are created and change their dates at any time."""


async def continue_due(database: Database, _: RowWaiters) -> float:
    """Create the next occurrence of every series that is due. Returns the seconds until the next check."""
    while await database.transact(continue_series):
        pass
    due = await database.read(next_to_continue)
    return POLL_SECONDS if due is None else min(max(due, 1.0), POLL_SECONDS)


LOOP = Loop("recurrence.run", continue_due)


async def continue_series(tx: Tx, now: dt.datetime | None = None) -> int:
    """Create the next occurrences of the events that have passed. Returns the number of passed events.

    now    None: the clock of the database
    """
    now = now or await tx.value("select clock_timestamp()")
    assert now
    passed = await lock_passed(tx, now)
    if not passed:
        return 0
    await mark_continued(tx, [occurrence.id for occurrence in passed], now)
    following = [next_one for occurrence in passed if (next_one := _next_after(occurrence, now))]
    await record_first_prices(tx, await insert_occurrences(tx, following, now))
    return len(passed)


def next_occurrence_at(
    start: dt.datetime, frequency: Frequency, interval: int, after: dt.datetime, zone: dt.tzinfo = dt.UTC
) -> dt.datetime | None:
    """The first date after `after` of a series that began at `start`; None if it would be after the year 9999.

    Each date has the same local time in the zone. An interval of 0 counts as 1. In a month without that day, the last
    day of the month is used.
    """
    interval = max(1, interval)
    if frequency in {"days", "weeks"}:
        step = relativedelta(days=interval * (7 if frequency == "weeks" else 1))
        passed = (after - start).days // step.days
    else:
        step = relativedelta(months=interval * (12 if frequency == "years" else 1))
        passed = ((after.year - start.year) * 12 + after.month - start.month) // (step.years * 12 + step.months)
    # About this many dates have passed: the day may come later in this month, and the local time may have shifted.
    steps = max(1, passed - 1)
    while (date := _later(start, step * steps, zone)) and date <= after:
        steps += 1
    return date


def clock_length(
    begins: dt.datetime, ends_at: dt.datetime, stored_length: dt.timedelta | None, zone: dt.tzinfo = dt.UTC
) -> dt.timedelta:
    """How long after its beginning an occurrence ends, by the clocks of the zone.

    stored_length    the one of the occurrence before; it counts as long as the end follows from it, and was not
                     changed since. The end itself may be moved: 2:30 is 3:30 on the day on which the clocks leave out
                     an hour at 2:00
    """
    if stored_length is not None and _end_at(begins, stored_length, zone) == ends_at:
        return stored_length
    try:
        return ends_at.astimezone(zone).replace(tzinfo=None) - begins.astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return ends_at - begins


def next_end_at(
    begins: dt.datetime,
    ends_at: dt.datetime | None,
    next_begins: dt.datetime,
    zone: dt.tzinfo = dt.UTC,
    stored_length: dt.timedelta | None = None,
) -> dt.datetime | None:
    """The end of an occurrence that begins at `next_begins`: as long after its beginning, by the clocks of the zone.

    So a weekly event from 18:00 to 20:00 always ends at 20:00. If the clocks were put back during the one before, so
    that this one would end before it begins, it takes as long as that one. None without an end.

    stored_length    see `clock_length`
    """
    if ends_at is None:
        return None
    return _end_at(next_begins, clock_length(begins, ends_at, stored_length, zone), zone) or moved_end(
        ends_at, begins, next_begins
    )


def _end_at(begins: dt.datetime, length: dt.timedelta, zone: dt.tzinfo) -> dt.datetime | None:
    """The end after a time by the clocks of the zone; None if it is not later than the beginning."""
    end = _later(begins, length, zone)
    return end if end and is_in_order(begins, end) else None


def _later(start: dt.datetime, apart: relativedelta | dt.timedelta, zone: dt.tzinfo) -> dt.datetime | None:
    """The time `apart` from the start, in the local time of a zone; None after the year 9999."""
    try:
        return (start.astimezone(zone) + apart).astimezone(dt.UTC)
    except (OverflowError, ValueError):
        return None


class PassedOccurrence(Struct):
    """An occurrence that has passed, and its series."""

    id: int
    datetime: dt.datetime
    ends_at: dt.datetime | None
    clock_length: dt.timedelta | None
    recurs_from: dt.datetime
    frequency: Frequency
    interval: int
    timezone: str | None


class NextOccurrence(Struct):
    """The occurrence after an event, given by its id: when it begins and ends."""

    id: int
    datetime: dt.datetime
    ends_at: dt.datetime | None
    clock_length: dt.timedelta | None


def _next_after(passed: PassedOccurrence, now: dt.datetime) -> NextOccurrence | None:
    """The next occurrence of a series; None if it would be after the year 9999."""
    timezone, begins, ends_at = zone(passed.timezone), passed.datetime, passed.ends_at
    date = next_occurrence_at(passed.recurs_from, passed.frequency, passed.interval, now, timezone)
    if date is None:
        return None
    length = None if ends_at is None else clock_length(begins, ends_at, passed.clock_length, timezone)
    return NextOccurrence(passed.id, date, next_end_at(begins, ends_at, date, timezone, length), length)


async def lock_passed(tx: Tx, now: dt.datetime) -> list[PassedOccurrence]:
    """Lock and return events that have passed and need a next occurrence.

    Events that others have locked are skipped, and events of organizers that others have locked.
    """
    return await tx.rows(
        PassedOccurrence,
        """
        select events.id, datetime, end_datetime as ends_at, clock_length, recurs_from,
               recurrence_frequency as frequency, recurrence_interval as interval, timezone
          from events join users as organizers on organizers.id = organizer_id
         where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null and published
           and datetime <= %(now)s
         order by datetime limit %(limit)s
           for no key update of events skip locked for key share of organizers skip locked
        """,
        {"now": now, "limit": OCCURRENCE_BATCH_SIZE},
    )


async def mark_continued(tx: Tx, ids: list[int], now: dt.datetime) -> None:
    await tx.run("update events set continued_at = %(now)s where id = any(%(ids)s)", {"ids": ids, "now": now})


async def insert_occurrences(tx: Tx, occurrences: Sequence[NextOccurrence], now: dt.datetime) -> list[int]:
    """Copy events to their new dates. Returns the ids of the new events."""
    rows = await tx.tuples(
        f"""
        with created_event as (
        insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                            price, min_price, max_price, current_price, recurrence_frequency, recurrence_interval,
                            recurs_from, address, location_name, latitude, longitude, image_keys, timezone,
                            cancellation_hours, end_datetime, clock_length, follows_id, inserted_at, public_log)
        select organizer_id, title, body, occurrence.datetime, capacity, waitinglist_capacity, currency, pricing_mode,
               price, min_price, max_price, {FIRST_PRICE}, recurrence_frequency,
               recurrence_interval, recurs_from, address, location_name, latitude, longitude, image_keys, timezone,
               cancellation_hours, occurrence.ends_at, occurrence.clock_length, events.id, %(now)s,
               public_log and %(public_logs)s
          from json_to_recordset(%(occurrences)s::json)
               as occurrence (id bigint, datetime timestamptz, ends_at timestamptz, clock_length interval)
          join events using (id)
         order by events.id
        returning id, follows_id),
        moved_queue as (
        update queues set event_id = created_event.id
          from created_event join events as previous on previous.id = created_event.follows_id
         where queues.id = previous.queue_id and deleted_at is null),
        copied_text as (
        insert into event_texts (event_id, version, digest, html, summary)
        select created_event.id, version, digest, html, summary
          from created_event join event_texts on event_id = follows_id)
        select id from created_event order by id
        """,
        {
            "occurrences": msgspec.json.encode(occurrences).decode(),
            "now": now,
            "public_logs": tx.resources.settings.public_logs,
        },
    )
    return [id for (id,) in rows]


async def next_to_continue(reader: Reader) -> float | None:
    """Seconds until the next occurrence has to be created; None if there is none."""
    return await reader.value(
        """
        select extract(epoch from min(datetime) - clock_timestamp())::float8 from events
         where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null and published
        """
    )


CURRENT_OCCURRENCES: LiteralString = f"""
    occurrence as (
        select id as requested_id, id, 0 as place, cancelled_at is null and datetime <= now() as passed
          from events where id = any(%(event_ids)s) and {is_public()}
        union all
        select requested_id, next.id, place + 1, next.cancelled_at is null and next.datetime <= now()
          from occurrence join events as next on next.follows_id = occurrence.id and {is_public("next")}
         where occurrence.passed),
    current_occurrence as (
        select distinct on (requested_id) requested_id, id from occurrence order by requested_id, place desc)"""
"""For `with recursive`: `current_occurrence` has the event that a link to each of `event_ids` shows, if there is one.

It is the event itself until that event has passed. Then it is the next occurrence that has not passed or was cancelled,
or else the last occurrence. Events that are not public are left out.
"""
