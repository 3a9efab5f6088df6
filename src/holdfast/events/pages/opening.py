"""What a registration form needs to know of the event it is for. Many forms are read in one statement."""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.events.model import Status
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
    """One row for each of the events that exists.

    An event is shown itself until it has passed; then it is the next of its series that has not passed or was
    cancelled, or else the last.
    """
    return await reader.rows(
        Opening,
        """
        with recursive line as (
            select id as asked, id, 0 as place, cancelled_at is null and datetime <= now() as passed
              from events where id = any(%(event_ids)s)
            union all
            select asked, next.id, place + 1, next.cancelled_at is null and next.datetime <= now()
              from line join events as next on next.follows_id = line.id
             where line.passed)
        select distinct on (asked) asked, events.id, title, datetime, timezone, pricing_mode,
               case when cancelled_at is not null then 'cancelled'
                    when datetime <= now() then 'expired'
                    when registered_count >= capacity then 'full'
                    else 'active' end as status,
               registered_count < capacity or waitlisted_count < waitinglist_capacity as takes_registrations,
               organizers.slug as organizer_slug
          from line
          join events on events.id = line.id
          join users as organizers on organizers.id = organizer_id
         order by asked, place desc
        """,
        {"event_ids": list(event_ids)},
    )
