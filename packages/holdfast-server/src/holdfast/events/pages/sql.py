"""SQL statements of the public pages."""

import datetime as dt
from collections.abc import Collection, Sequence, Set
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.draws.model import CHECK_COLUMNS, CheckColumns
from holdfast.events.events.model import EVENT_COLUMNS, EventRow, is_public
from holdfast.events.events.text import STORED_TEXT
from holdfast.events.organizers.branding import LOGO
from holdfast.events.pages.model import EventCard, FeedEvent, Opening
from holdfast.events.queues.event_queue import EVENT_QUEUE
from holdfast.events.resources import Reader
from holdfast.events.seats.drawn import EVENT_DRAWS
from holdfast.events.texts.rendered_text import VERSION, RenderedText
from holdfast.events.users.model import PUBLIC_ACCENT, PUBLIC_NAME

DETAILS: LiteralString = """concat_ws('.', events.calendar_sequence, events.image_keys, events.latitude,
    events.longitude, events.recurrence_frequency, events.recurrence_interval, organizers.name, organizers.slug)"""
"""A text that changes with what a page shows of an event beside its numbers and its text."""


NUMBERED_COUNT: LiteralString = "select arrivals from logs where event_id = events.id order by generation desc limit 1"
"""How many registrations of an event are numbered in its public log; null: it has none."""


OPENING: LiteralString = """
    case when events.draw_at is not null
         then jsonb_build_object('status', case when events.drawn_at is not null then 'drawn'
                                               when events.draw_void_at is not null then 'void'
                                               when events.draw_at <= now() then 'closed' else 'open' end,
                                 'at', events.draw_at, 'round', events.draw_round, 'round_at', events.draw_round_at,
                                 'entries', events.draw_entries, 'confirmed', events.draw_confirmed) end"""
"""SQL for the draw with which an event opens, as `read_opening` reads it; null: it has none."""


def read_opening(value: Any) -> Opening | None:
    """What `OPENING` has given."""
    return None if value is None else msgspec.convert(value, Opening)


class EventExtras(CheckColumns):
    """The data on the page of an event that is not in its row."""

    organizer_name: str | None
    accent: str | None
    logo: str | None
    recurs_from: dt.datetime | None
    now: dt.datetime
    version: str
    numbered: int | None
    opening: Any
    refund_days: int
    queue: Any
    html: str | None
    summary: str | None

    @property
    def text(self) -> RenderedText | None:
        """The text of the event as HTML, if it is stored."""
        return None if self.html is None or self.summary is None else RenderedText(self.html, self.summary)


async def find_events(reader: Reader, ids: Collection[int]) -> dict[int, tuple[EventRow, EventExtras]]:
    """The events that exist among the ids, by id, with what else their pages show.

    One statement: the page of an event that changes is rendered often.
    """
    rows = await reader.pairs(
        EventRow,
        EventExtras,
        f"""
        select event.*
          from unnest(%(ids)s::bigint[]) as requested (id)
         cross join lateral (
            select {EVENT_COLUMNS},
                   {PUBLIC_NAME} as organizer_name, {PUBLIC_ACCENT} as accent, {LOGO} as logo, recurs_from,
                   now() as now, md5({DETAILS}) as version, ({NUMBERED_COUNT}) as numbered,
                   {OPENING} as opening, {EVENT_QUEUE} as queue,
                   coalesce((select refund_days from payout_accounts
                              where organizer_id = organizers.id and is_confirmed limit 1), 0) as refund_days,
                   stored_text.html, stored_text.summary,
                   {CHECK_COLUMNS}
              from events join users as organizers on organizers.id = events.organizer_id
              {EVENT_DRAWS.check_of("events")}
              {STORED_TEXT}
             where events.id = requested.id limit 1) as event
        """,
        {"ids": list(ids), "text_version": VERSION},
    )
    return {row.id: (row, extras) for row, extras in rows}


async def find_owners(reader: Reader, event_ids: Set[int], organizer_ids: Sequence[int]) -> dict[int, bool]:
    """The organizers who have one of the events, each with whether one of these is public."""
    rows = await reader.tuples(
        f"""
        select organizer_id, bool_or({is_public()}) from events
         where id = any(%(event_ids)s) and organizer_id = any(%(organizer_ids)s)
         group by organizer_id
        """,
        {"event_ids": [*event_ids], "organizer_ids": organizer_ids},
    )
    return dict(rows)


class OrganizerRow(Struct):
    """The id of an organizer, and what the public sees of it."""

    id: int
    name: str | None
    about: str | None
    accent: str | None
    logo: str | None


async def find_organizer(reader: Reader, slug: str) -> OrganizerRow | None:
    return await reader.row(
        OrganizerRow,
        f"""
        select id, {PUBLIC_NAME} as name, case when proved_at is not null then about end as about,
               {PUBLIC_ACCENT} as accent, {LOGO} as logo
          from users as organizers where slug = %(slug)s and erased_at is null
        """,
        {"slug": slug},
    )


_CARD: LiteralString = """
    id, title, datetime, end_datetime as ends_at, timezone, location_name, address, pricing_mode, currency,
    current_price, capacity - registered_count as left, waitinglist_capacity - waitlisted_count as waitlist_left,
    image_keys[1] as photo
"""


async def list_upcoming(
    reader: Reader, organizer_id: int, after: tuple[dt.datetime, int] | None, limit: int
) -> list[EventCard]:
    """Published events of an organizer that are neither over nor cancelled, soonest first.

    after    the date and the id of the event after which the list begins; None: it begins with the first
    """
    date, id = after or (None, 0)
    return await reader.rows(
        EventCard,
        f"""
        select {_CARD}
          from events
         where organizer_id = %(organizer_id)s and cancelled_at is null and {is_public()} and datetime > now()
           and (datetime, id) > (coalesce(%(date)s::timestamptz, '-infinity'), %(id)s)
         order by datetime, id limit %(limit)s
        """,
        {"organizer_id": organizer_id, "date": date, "id": id, "limit": limit},
    )


async def list_past(
    reader: Reader, organizer_id: int, before: tuple[dt.datetime, int] | None, limit: int
) -> list[EventCard]:
    """Published events of an organizer that have begun and are not cancelled, the latest first.

    before    the date and the id of the event before which the list begins; None: it begins with the last
    """
    date, id = before or (None, 0)
    return await reader.rows(
        EventCard,
        f"""
        select {_CARD}
          from events
         where organizer_id = %(organizer_id)s and cancelled_at is null and {is_public()} and datetime <= now()
           and (datetime, id) < (coalesce(%(date)s::timestamptz, 'infinity'), %(id)s)
         order by datetime desc, id desc limit %(limit)s
        """,
        {"organizer_id": organizer_id, "date": date, "id": id, "limit": limit},
    )


async def list_for_feeds(reader: Reader, organizer_id: int, limit: int) -> list[FeedEvent]:
    """Published events of an organizer from 30 days ago on, also cancelled ones, soonest first."""
    return await reader.rows(
        FeedEvent,
        f"""
        select id, title, datetime, end_datetime as ends_at, timezone, location_name, address, latitude, longitude,
               calendar_sequence, cancelled_at, inserted_at
          from events
         where organizer_id = %(organizer_id)s and {is_public()} and datetime > now() - interval '30 days'
         order by datetime, id limit %(limit)s
        """,
        {"organizer_id": organizer_id, "limit": limit},
    )


async def now(reader: Reader) -> dt.datetime:
    """The time of the database."""
    return await reader.value("select now()")
