"""An event as the console shows it: its details, its figures and people, and the defaults for a new event."""

import datetime as dt
from typing import LiteralString

from msgspec import Struct, field

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow, GetEvent
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.photos.model import ImageAttributes, image_attributes
from holdfast.events.photos.sizes import find_sizes
from holdfast.events.pricing.model import PricePoint
from holdfast.events.pricing.operations import list_price_points
from holdfast.events.queues.event_queue import EventQueue, find_event_queue
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.operations.operation import Operation, read

MAX_COUNTED = 2_000
"""The most people of an event who are counted for its page: counting more would make the page slow."""

MAX_READ_EVENTS = 100
"""In how many of an organizer's newest events the last one with a price is looked for."""


class PeopleCounts(Struct):
    """The numbers of people of an event, by status.

    mailed     how many of the registered and waitlisted people get mails about the event
    has_log    whether the public log of its order is open
    refunds    what was paid by card and goes back if the event is cancelled, by currency, in minor units
    """

    registered: int
    waiting: int
    pending: int
    mailed: int
    has_log: bool
    refunds: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


class PublicOrder(Struct):
    """What the public log of an event says in numbers.

    arrivals          how many registrations are numbered
    moved, removed    how many registrations the organizer has moved and removed
    """

    arrivals: int
    moved: int
    removed: int


class EventDetails(Struct):
    """An event as the console shows it.

    pending        the number of registrations that are not settled yet
    prices         the last prices, oldest first
    images_from    the origin of the photos; empty if it is that of the pages
    now            the time of the database
    order          the public order of its registrations; None: it has no log
    queue          the waiting room before it; None: it has none
    """

    event: EventRow
    pending: int
    prices: list[PricePoint]
    photos: list[ImageAttributes]
    images_from: str
    now: dt.datetime
    order: PublicOrder | None
    queue: EventQueue | None


class EventFigures(Struct):
    """Figures of an event that are counted from its people.

    by_day     the last 60 days on which people registered, as they begin in the zone of the event, and the numbers of
               people who have a seat or wait
    by_hour    the same for the last hours of that day, at least seven, if it is one day; else empty
    entered    how many attendees have entered
    revenue    what was paid by card and not given back, by currency
    """

    by_day: list[tuple[dt.datetime, int]]
    by_hour: list[tuple[dt.datetime, int]]
    entered: int
    revenue: list[tuple[str, int]]


class EventDefaults(Struct):
    """The defaults for a new event: those of the organizer's events so far, if any. A free event has no currency to
    speak of: it would have the default of the service.
    """

    timezone: str | None
    currency: str | None


class ReadEventDefaults(Command):
    """Asks for the defaults of a new event."""


_DEFAULTS: LiteralString = """
    select (select timezone from events where organizer_id = %(id)s order by id desc limit 1),
           (select currency
              from (select id, currency, pricing_mode from events
                     where organizer_id = %(id)s order by id desc limit %(max_read_rows)s) as newest
             where pricing_mode <> 'free' order by id desc limit 1) as currency
"""
_PENDING: LiteralString = "select count(*) from registrations where event_id = %(event_id)s and status = 'pending'"
_ORDER: LiteralString = """
    select arrivals, moved, removed from logs where event_id = %(event_id)s order by generation desc limit 1
"""
_BY_DAY: LiteralString = """
    with days as (
      select date_trunc('day', received_at at time zone %(timezone)s) as day, count(*) as number
        from registrations where event_id = %(event_id)s and status in ('registered', 'held', 'waitlisted')
       group by day),
    every_day as (
      select generate_series(greatest(min(day), max(day) - interval '59 days'), max(day), interval '1 day') as day
        from days)
    select day at time zone %(timezone)s, coalesce(number, 0) from every_day left join days using (day) order by day
"""
_BY_HOUR: LiteralString = """
    with hours as (
      select date_trunc('hour', received_at) as hour, count(*) as number
        from registrations where event_id = %(event_id)s and status in ('registered', 'held', 'waitlisted')
       group by hour),
    every_hour as (
      select generate_series(least(min(hour), max(hour) - interval '6 hours'), max(hour), interval '1 hour') as hour
        from hours)
    select hour, coalesce(number, 0) from every_hour left join hours using (hour) order by hour
"""
_ENTERED: LiteralString = "select count(*) from check_in_scans where event_id = %(event_id)s and is_entry"
_REVENUE: LiteralString = """
    select currency, sum(amount - refunded)::bigint
      from payments where event_id = %(event_id)s and state = 'paid' group by currency order by currency
"""
_REFUNDS: LiteralString = """
    select currency, sum(amount - refunded - kept)::bigint
      from payments where event_id = %(event_id)s and state = 'paid' and refunded + kept < amount
     group by currency order by currency
"""
"""SQL: the payments that the function `give_back_all` gives back."""
_PEOPLE: LiteralString = """
    select count(*) filter (where status = 'registered') as registered,
           count(*) filter (where status = 'waitlisted') as waiting,
           count(*) filter (where status in ('pending', 'in_draw')) as pending,
           count(*) filter (where status in ('registered', 'waitlisted') and notify) as mailed,
           exists (select from logs where event_id = %(event_id)s and closed_at is null) as has_log
      from registrations where event_id = %(event_id)s
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def read_event(reader: Reader, caller: Caller, command: GetEvent) -> EventDetails:
    """Read an event as the console shows it."""
    event = await events.find(reader, caller, command.event_id)
    pending = await reader.value(_PENDING, {"event_id": event.id})
    now = await reader.value("select now()")
    known_sizes = await find_sizes(reader, event.image_keys) if event.image_keys else {}
    settings = reader.resources.settings
    photos = [image_attributes(key, known_sizes.get(key), settings) for key in event.image_keys]
    prices = (await list_price_points(reader, [event.id]))[event.id]
    order = await reader.row(PublicOrder, _ORDER, {"event_id": event.id})
    queue = await find_event_queue(reader, event.id) if event.queue_id is not None else None
    return EventDetails(event, pending, prices, photos, photo_origin(settings), now, order, queue)


@refuses(NOT_FOUND, FORBIDDEN)
async def count_figures(reader: Reader, caller: Caller, command: GetEvent) -> EventFigures | None:
    """Count the figures of an event. None for an event with more than MAX_COUNTED people."""
    event = await events.find(reader, caller, command.event_id)
    if event.registered_count + event.waitlisted_count > MAX_COUNTED:
        return None
    values = {"event_id": event.id, "timezone": event.timezone or "UTC"}
    by_day = await reader.tuples(_BY_DAY, values)
    by_hour = await reader.tuples(_BY_HOUR, values) if len(by_day) == 1 else []
    entered = await reader.value(_ENTERED, values)
    return EventFigures(by_day, by_hour, entered, await reader.tuples(_REVENUE, values))


@refuses(NOT_FOUND, FORBIDDEN)
async def count_people(reader: Reader, caller: Caller, command: GetEvent) -> PeopleCounts:
    """Count the people of an event from its registrations, and its refunds from its payments."""
    event = await events.find(reader, caller, command.event_id)
    people = await reader.row(PeopleCounts, _PEOPLE, {"event_id": event.id})
    assert people
    people.refunds = await reader.tuples(_REFUNDS, {"event_id": event.id})
    return people


async def read_defaults(reader: Reader, caller: Caller, command: ReadEventDefaults) -> EventDefaults:
    """The time zone of an organizer's last event, and the currency of the last one with a price."""
    row = await reader.row(EventDefaults, _DEFAULTS, {"id": caller.tenant, "max_read_rows": MAX_READ_EVENTS})
    assert row
    return row


READ_EVENT = Operation("get_console_event", None, read(read_event))
COUNT_FIGURES = Operation("count_figures_of_event", None, read(count_figures))
COUNT_PEOPLE = Operation("count_people_of_event", None, read(count_people))
READ_DEFAULTS = Operation("get_event_defaults", None, read(read_defaults))
OPERATIONS = (READ_EVENT, COUNT_FIGURES, COUNT_PEOPLE, READ_DEFAULTS)
"""Operations of the console alone: they have no routes of the API and no tools."""
