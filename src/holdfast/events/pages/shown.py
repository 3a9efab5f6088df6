"""Which event a link to an event shows, and in which version: kept for a second, and forgotten when the event changes.

So a crowd at one event asks the database for nothing. Many links are looked up in one statement.
"""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.events.model import CHANGED, STATUS, Status
from holdfast.events.events.recurrence import SHOWN
from holdfast.events.ids import EventId
from holdfast.events.pricing.model import PricingMode
from holdfast.events.resources import Database, Reader
from holdfast.kit.caller import ADMIN
from holdfast.kit.command import Command
from holdfast.kit.lookups import Lookups
from holdfast.kit.modes import Batch, read_batched
from holdfast.kit.operation import Operation
from holdfast.kit.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.runner import Runner


class FindShown(Command):
    """Asks which event a link to an event shows."""

    event_id: EventId


class Opening(Struct, frozen=True):
    """What a registration form needs to know of the event that it is for."""

    id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    status: Status
    pricing_mode: PricingMode
    takes_registrations: bool
    payouts_ready: bool
    organizer_slug: str
    current_price: int | None
    currency: str


class Shown(Struct, frozen=True):
    """What a link to an event shows.

    asked      the event in the link
    slug       the organizer of that event
    version    changes whenever something changes that a page of the event shows
    event      the event that is shown: the one in the link, or the next occurrence after it
    """

    asked: int
    slug: str
    version: str
    event: Opening

    @property
    def is_asked(self) -> bool:
        """Whether the event in the link is the one that is shown."""
        return self.asked == self.event.id


@refuses(NOT_FOUND)
async def find(reader: Reader, batch: Batch[FindShown]) -> Sequence[Shown | Problem]:
    """Find what links to events show."""
    wanted = [call.command.event_id for call in batch.calls]
    found = {each.asked: each for each in await find_shown(reader, [*{*wanted}])}
    return [found.get(id) or NOT_FOUND(f"No event has the id {id}.") for id in wanted]


FIND = Operation("find_shown_event", None, read_batched(find))
"""It has no route and no tool of its own."""


def kept(database: Database, runner: Runner) -> Lookups[int, Shown]:
    """What links to events show, by the id of the event in the link. `get` raises `not_found`."""

    async def look_up(event_id: int) -> Shown:
        return await runner[FIND](ADMIN, FindShown(event_id=event_id))

    # Which occurrence of a series is shown depends on several events.
    return Lookups(database, CHANGED, int, look_up, by_itself=lambda shown: shown.is_asked)


async def find_shown(reader: Reader, event_ids: Sequence[int]) -> list[Shown]:
    """One row for each of the events that exists.

    `xmin` is the transaction that wrote a row last, so no change keeps the version.
    """
    rows = await reader.tuples(
        f"""
        with recursive {SHOWN}
        select asked, askers.slug,
               concat_ws('.', events.xmin, organizers.xmin, events.datetime <= now(),
                         case when events.image_keys <> '{{}}'
                              then (select string_agg(photos.xmin::text, '.' order by key)
                                      from photos where key = any(events.image_keys)) end),
               events.id, events.title, events.datetime, events.timezone, {STATUS}, events.pricing_mode,
               events.registered_count < events.capacity or events.waitlisted_count < events.waitinglist_capacity,
               organizers.payouts_ready, organizers.slug, events.current_price, events.currency
          from shown
          join events on events.id = shown.id
          join users as organizers on organizers.id = events.organizer_id
          join events as asked_events on asked_events.id = asked
          join users as askers on askers.id = asked_events.organizer_id
        """,
        {"event_ids": list(event_ids)},
    )
    return [Shown(*row[:3], event=Opening(*row[3:])) for row in rows]
