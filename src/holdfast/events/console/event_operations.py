"""What the pages of one event ask of the database, besides the operations of the API."""

import datetime as dt
from typing import LiteralString

from msgspec import Struct

from holdfast.events.console.event_form import version
from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow, GetEvent, UpdateEvent
from holdfast.events.images.model import Picture, sizes
from holdfast.events.images.sizes import find_sizes
from holdfast.events.pages.event import origin
from holdfast.events.pages.model import PricePoint
from holdfast.events.pages.operations import list_prices
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, refuses


class People(Struct):
    """How many people an event has.

    told    how many of the registered and the waiting get mails about it
    """

    registered: int
    waiting: int
    pending: int
    told: int


class Seen(Struct):
    """An event, as its organizer looks at it.

    pending        how many registrations are not settled yet
    prices         the last changes of its price, oldest first
    images_from    the origin of photos if it is not that of the pages
    now            the time of the database
    """

    event: EventRow
    pending: int
    prices: list[PricePoint]
    photos: list[Picture]
    images_from: str
    now: dt.datetime


class EditEvent(Command):
    """Asks for changes of an event.

    version    that of the event that somebody saw who asks for them
    """

    event_id: int
    version: str
    changes: UpdateEvent


class Edited(Struct):
    """An event that was to be changed. It is as it was if others had changed it before."""

    event: EventRow
    is_done: bool


class Usual(Struct):
    """What an organizer chose last."""

    timezone: str | None
    currency: str


class LookUsual(Command):
    """Asks what an organizer chose for its last event."""


@refuses(NOT_FOUND, FORBIDDEN)
async def look(reader: Reader, caller: Caller, command: GetEvent) -> Seen:
    """Read what the console shows of an event."""
    event = await events.find(reader, caller, command.event_id)
    pending = await reader.value(_PENDING, {"event_id": event.id})
    now = await reader.value("select now()")
    known = await find_sizes(reader, event.image_keys) if event.image_keys else {}
    settings = reader.resources.settings
    photos = [sizes(key, known.get(key), settings) for key in event.image_keys]
    return Seen(event, pending, await list_prices(reader, event.id), photos, origin(settings), now)


@refuses(NOT_FOUND, FORBIDDEN)
async def count(reader: Reader, caller: Caller, command: GetEvent) -> People:
    """Count the people of an event, one by one."""
    event = await events.find(reader, caller, command.event_id)
    people = await reader.row(People, _PEOPLE, {"event_id": event.id})
    assert people
    return people


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def edit(tx: Tx, caller: Caller, command: EditEvent) -> Edited:
    """Change an event, unless somebody else has changed it since it was seen."""
    event = await events.lock(tx, caller, command.event_id)
    if version(event) != command.version:
        return Edited(event, is_done=False)
    await events.change(tx, caller, command.changes)
    return Edited(event, is_done=True)


async def usual(reader: Reader, caller: Caller, command: LookUsual) -> Usual:
    """The time zone and the currency of an organizer's last event."""
    found = await reader.row(
        Usual,
        "select timezone, currency from events where organizer_id = %(id)s order by id desc limit 1",
        {"id": caller.tenant},
    )
    return found or Usual(None, "USD")


_PENDING: LiteralString = "select count(*) from registrations where event_id = %(event_id)s and status = 'pending'"
_PEOPLE: LiteralString = """
    select count(*) filter (where status = 'registered') as registered,
           count(*) filter (where status = 'waitlisted') as waiting,
           count(*) filter (where status = 'pending') as pending,
           count(*) filter (where status in ('registered', 'waitlisted') and notify) as told
      from registrations where event_id = %(event_id)s
"""

LOOK = Operation("look_at_event", None, read(look))
COUNT = Operation("count_people_of_event", None, read(count))
EDIT = Operation("edit_event", None, single(edit))
USUAL = Operation("look_at_last_event", None, read(usual))
OPERATIONS = (LOOK, COUNT, EDIT, USUAL)
"""They have no routes and no tools of their own."""
