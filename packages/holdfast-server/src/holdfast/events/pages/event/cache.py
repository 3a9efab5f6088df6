"""The cache of the events that links show, with their versions: for a second, or until a notice of a change.

So a crowd at one event costs no database query. One statement looks up many links.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from holdfast.events.events.model import CHANGE_CHANNEL, STATUS, EventStatus, Frequency
from holdfast.events.events.recurrence import CURRENT_OCCURRENCES
from holdfast.events.organizers.branding import LOGO
from holdfast.events.pages.model import Opening, PlaceCounts
from holdfast.events.pages.sql import NUMBERED_COUNT, OPENING, read_opening
from holdfast.events.paths import EventId
from holdfast.events.photos.model import PHOTO_SIZES, PhotoSizes, read_sizes
from holdfast.events.pricing.model import PricingMode
from holdfast.events.queues.event_queue import EVENT_QUEUE, EventQueue, read_event_queue
from holdfast.events.resources import Database, Reader
from holdfast.events.users.model import PUBLIC_ACCENT, PUBLIC_NAME
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import ADMIN
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch, Operation, read_batched
from holdfast.kit.operations.runner import Runner
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache

LINKED_EVENTS = cache_bound("Events that pages show", "events", f"{MAX_RESULTS}, for a second")


class FindLinkedEvent(Command):
    """Asks for the event that a link to an event shows."""

    event_id: EventId


class RegistrableEvent(Struct, PlaceCounts, frozen=True):
    """The data of an event that its registration form needs.

    refund_days       a cancellation at least this many days before the event is refunded in full, a later one not at
                      all
    is_confirmed      whether the owner of the organizer's address has confirmed it
    organizer_name    None while the organizer has not confirmed its address
    accent, logo      the accent and the file of the logo of the organizer, or None
    photo             the key of its first photo, or None
    photo_sizes       the sizes of that photo, if it has them
    numbered          how many registrations are numbered in its public log; None: it has none
    opening           the draw with which it opens; None: it has none
    queue             the waiting room before it; None: it has none
    """

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    cancellation_hours: int
    status: EventStatus
    pricing_mode: PricingMode
    capacity: int
    registered_count: int
    waitinglist_capacity: int
    waitlisted_count: int
    seats_passed_on: int
    payouts_ready: bool
    organizer_slug: str
    current_price: int | None
    min_price: int | None
    max_price: int | None
    currency: str
    refund_days: int
    is_confirmed: bool
    organizer_name: str | None
    accent: str | None
    logo: str | None
    location_name: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    recurrence_frequency: Frequency
    recurrence_interval: int
    photo: str | None
    numbered: int | None
    photo_sizes: PhotoSizes | None
    opening: Opening | None
    queue: EventQueue | None


class LinkedEvent(Struct, frozen=True):
    """The event that a link shows.

    requested_id    the id of the event in the link
    slug            the slug of the organizer of that event
    version         a text that changes whenever the content of a page of the event changes
    event           the event to show: the one in the link, or the next occurrence after it
    """

    requested_id: int
    slug: str
    version: str
    event: RegistrableEvent

    @property
    def is_own_event(self) -> bool:
        """Whether the link shows its own event, not a later occurrence."""
        return self.requested_id == self.event.id


@refuses(NOT_FOUND)
async def find(reader: Reader, batch: Batch[FindLinkedEvent]) -> Sequence[LinkedEvent | Problem]:
    """Find the events that links show."""
    event_ids = [call.command.event_id for call in batch.calls]
    by_id = {
        linked_event.requested_id: linked_event for linked_event in await find_linked_events(reader, [*{*event_ids}])
    }
    return [by_id.get(id) or NOT_FOUND(f"No event has the id {id}.") for id in event_ids]


FIND_LINKED_EVENT = Operation("find_linked_event", None, read_batched(find))
"""An operation of pages alone: it has no route of the API and no tool."""


def linked_event_cache(database: Database, runner: Runner) -> LookupCache[int, LinkedEvent]:
    """The cache of the events that links show, by the id of the event in the link. `get` raises `not_found`."""

    async def look_up(event_id: int) -> LinkedEvent:
        return await runner.run_of(FIND_LINKED_EVENT)(ADMIN, FindLinkedEvent(event_id=event_id))

    # The occurrence of a series that a link shows depends on several events.
    return LookupCache(
        LINKED_EVENTS,
        database,
        CHANGE_CHANNEL,
        int,
        look_up,
        changes_alone=lambda linked_event: linked_event.is_own_event,
    )


async def find_linked_events(reader: Reader, event_ids: Sequence[int]) -> list[LinkedEvent]:
    """One row for each existing event.

    `xmin` is the id of the last transaction that wrote a row, so every change changes the version.
    """
    rows = await reader.tuples(
        f"""
        with recursive {CURRENT_OCCURRENCES}
        select requested_id, requested_organizer.slug,
               concat_ws('.', events.xmin, organizers.xmin, events.datetime <= now(), events.end_datetime <= now(),
                         events.draw_at <= now(), ({EVENT_QUEUE})::text,
                         rule.refund_days, branding.logo,
                         ({NUMBERED_COUNT}),
                         case when events.image_keys <> '{{}}'
                              then (select string_agg(photos.xmin::text, '.' order by key)
                                      from photos where key = any(events.image_keys)) end),
               events.id, events.title, events.datetime, events.end_datetime, events.timezone,
               events.cancellation_hours, {STATUS},
               events.pricing_mode, events.capacity, events.registered_count,
               events.waitinglist_capacity, events.waitlisted_count, events.seats_passed_on,
               organizers.payouts_ready, organizers.slug,
               events.current_price, events.min_price, events.max_price, events.currency,
               coalesce(rule.refund_days, 0),
               organizers.proved_at is not null, {PUBLIC_NAME}, {PUBLIC_ACCENT}, branding.logo,
               events.location_name, events.address, events.latitude, events.longitude,
               events.recurrence_frequency, events.recurrence_interval, events.image_keys[1], ({NUMBERED_COUNT}),
               {PHOTO_SIZES},
               {OPENING}, {EVENT_QUEUE}
          from current_occurrence
          join events on events.id = current_occurrence.id
          join users as organizers on organizers.id = events.organizer_id
         cross join lateral (select {LOGO} as logo) as branding
          left join lateral (select refund_days from payout_accounts
                              where organizer_id = organizers.id and is_confirmed limit 1) as rule on true
          join events as requested_events on requested_events.id = requested_id
          join users as requested_organizer on requested_organizer.id = requested_events.organizer_id
        """,
        {"event_ids": list(event_ids)},
    )
    return [LinkedEvent(*row[:3], event=_read_event(row[3:])) for row in rows]


def _read_event(row: tuple[Any, ...]) -> RegistrableEvent:
    *columns, sizes, opening, queue = row
    return RegistrableEvent(
        *columns, photo_sizes=read_sizes(sizes), opening=read_opening(opening), queue=read_event_queue(queue)
    )
