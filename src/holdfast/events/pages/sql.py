"""Statements of the pages."""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.events.recurrence import SHOWN
from holdfast.events.pages.model import Card, PricePoint, Version
from holdfast.events.resources import Reader

MOST_PRICES = 1_000
"""The most prices that a page reads of a price history; the latest ones."""


async def find_versions(reader: Reader, event_ids: Sequence[int]) -> list[Version]:
    """What links to these events show, by one row for each event that exists.

    `xmin` is the transaction that wrote a row last, so no change keeps the version. Events of a series that have passed
    are looked for once more: that statement takes twice as long, and few need it.
    """
    rows = await reader.tuples(
        """
        select events.id, events.id, organizers.slug,
               concat_ws('.', events.xmin, organizers.xmin, datetime <= now(),
                         case when image_keys <> '{}'
                              then (select string_agg(photos.xmin::text, '.' order by key)
                                      from photos where key = any(image_keys)) end),
               recurrence_frequency <> 'none' and cancelled_at is null and datetime <= now()
          from unnest(%(event_ids)s::bigint[]) as asked (id)
         cross join lateral (select xmin, * from events where id = asked.id limit 1) as events
         cross join lateral (select xmin, slug from users where id = events.organizer_id limit 1) as organizers
        """,
        {"event_ids": list(event_ids)},
    )
    passed = [row[0] for row in rows if row[-1]]
    versions = [Version(*row[:-1]) for row in rows if not row[-1]]
    return versions + (await _find_later_versions(reader, passed) if passed else [])


async def _find_later_versions(reader: Reader, event_ids: Sequence[int]) -> list[Version]:
    """The same for events that have passed: they show the next occurrence."""
    return await reader.rows(
        Version,
        f"""
        with recursive {SHOWN}
        select asked, events.id as event_id, askeds.slug,
               concat_ws('.', events.xmin, organizers.xmin, events.datetime <= now(),
                         (select string_agg(photos.xmin::text, '.' order by key)
                            from photos where key = any(events.image_keys))) as version
          from shown
          join events on events.id = shown.id
          join users as organizers on organizers.id = events.organizer_id
          join events as asked_events on asked_events.id = asked
          join users as askeds on askeds.id = asked_events.organizer_id
        """,
        {"event_ids": list(event_ids)},
    )


class Besides(Struct):
    """What the page of an event shows of other rows."""

    organizer_name: str
    recurs_from: dt.datetime | None
    now: dt.datetime


async def find_besides(reader: Reader, event_id: int) -> Besides | None:
    return await reader.row(
        Besides,
        """
        select organizers.name as organizer_name, recurs_from, now() as now
          from events join users as organizers on organizers.id = events.organizer_id
         where events.id = %(event_id)s
        """,
        {"event_id": event_id},
    )


async def list_prices(reader: Reader, event_id: int) -> list[PricePoint]:
    """The last prices of an event, oldest first."""
    return await reader.rows(
        PricePoint,
        """
        select "timestamp", price
          from (select id, "timestamp", new_price as price from price_changes
                 where event_id = %(event_id)s order by id desc limit %(limit)s) as last
         order by id
        """,
        {"event_id": event_id, "limit": MOST_PRICES},
    )


class Found(Struct):
    """An organizer."""

    id: int
    name: str


async def find_organizer(reader: Reader, slug: str) -> Found | None:
    return await reader.row(Found, "select id, name from users where slug = %(slug)s", {"slug": slug})


async def list_upcoming(
    reader: Reader, organizer_id: int, after: tuple[dt.datetime, int] | None, limit: int
) -> list[Card]:
    """Events of an organizer that are neither over nor cancelled, soonest first, after one with this date and id."""
    date, id = after or (None, 0)
    return await reader.rows(
        Card,
        """
        select id, title, datetime, timezone, location_name, address, pricing_mode, currency, current_price,
               capacity - registered_count as left, waitinglist_capacity - waitlisted_count as room,
               image_keys[1] as photo
          from events
         where organizer_id = %(organizer_id)s and cancelled_at is null and datetime > now()
           and (datetime, id) > (coalesce(%(date)s::timestamptz, '-infinity'), %(id)s)
         order by datetime, id limit %(limit)s
        """,
        {"organizer_id": organizer_id, "date": date, "id": id, "limit": limit},
    )
