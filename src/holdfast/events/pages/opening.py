"""What a registration form needs to know of the event it is for. Many forms are read in one statement."""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.events.model import STATUS, Status
from holdfast.events.events.recurrence import SHOWN
from holdfast.events.ids import EventId
from holdfast.events.pricing.model import PricingMode
from holdfast.events.resources import Reader
from holdfast.kit.command import Command
from holdfast.kit.modes import Batch
from holdfast.kit.problems import NOT_FOUND, Problem, refuses


class FindOpening(Command):
    """Asks which event a form for an event is for now."""

    event_id: EventId


class Opening(Struct, frozen=True):
    """The event that a form is for: the one that was asked for, or once that has passed the next of its series."""

    asked: int
    id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    status: Status
    pricing_mode: PricingMode
    takes_registrations: bool
    organizer_slug: str


@refuses(NOT_FOUND)
async def find(reader: Reader, batch: Batch[FindOpening]) -> Sequence[Opening | Problem]:
    """Find what forms show."""
    wanted = [call.command.event_id for call in batch.calls]
    found = {each.asked: each for each in await find_openings(reader, [*{*wanted}])}
    return [found.get(id) or NOT_FOUND(f"No event has the id {id}.") for id in wanted]


async def find_openings(reader: Reader, event_ids: Sequence[int]) -> list[Opening]:
    """One row for each of the events that exists."""
    return await reader.rows(
        Opening,
        f"""
        with recursive {SHOWN}
        select asked, events.id, title, datetime, timezone, pricing_mode,
               {STATUS} as status,
               registered_count < capacity or waitlisted_count < waitinglist_capacity as takes_registrations,
               organizers.slug as organizer_slug
          from shown
          join events on events.id = shown.id
          join users as organizers on organizers.id = organizer_id
        """,
        {"event_ids": list(event_ids)},
    )
