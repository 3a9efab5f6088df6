"""Check-in: what devices at the entrance tell, and what they are told."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.ids import EventId
from holdfast.kit.command import Command, rule

AT_ONCE = 100
"""Scans that a device sends together."""

PORTION = 5_000
"""People, or scans, that a device is told together."""

HOURS_OF_LIST = 24
"""How long after the beginning of an event devices may have its list."""

ScanId = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$(?!\n)")]
Device = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$(?!\n)")]

Say = Literal[
    "in",
    "double",
    "in_without_seat",
    "taken_back",
    "waitlisted",
    "pending",
    "rejected",
    "no_show",
    "event_cancelled",
    "removed",
    "other_event",
    "unknown",
]
"""What a scanner says.

in                 let this person in; also when the same scan comes again
double             somebody is in with this code
in_without_seat    let in by a device that had not heard that the seat was gone
taken_back         this scan was undone by hand
waitlisted         on the waiting list; the next ones say why else there is no seat
no_show            had not come in time: the seat was given to somebody else
removed            a genuine code of this event, of a registration that is no more
other_event        a genuine code of another event
unknown            no code of this event
"""


class Scan(Struct):
    """What a device has read.

    id         made by the device
    text       of a QR code, or typed
    told_at    when that was by the clock of the device, in milliseconds since 1970
    let_in     whether the device has said that the person may go in
    """

    id: ScanId
    text: Annotated[str, Meta(max_length=600)]
    told_at: Annotated[int, Meta(ge=-8_640_000_000_000_000, le=8_640_000_000_000_000)]
    let_in: bool = False


class StoreScans(Command):
    event_id: EventId
    device: Device
    scans: Annotated[list[Scan], Meta(min_length=1, max_length=AT_ONCE)]

    @rule("scans")
    def _each_once(self) -> str | None:
        return None if len({each.id for each in self.scans}) == len(self.scans) else "must have different ids"


class LookAtCheckIn(Command):
    """Asks how the check-in of an event stands."""

    event_id: EventId


class FindPeople(Command):
    """Asks for people whose name or address contains a text."""

    event_id: EventId
    text: Annotated[str, Meta(min_length=1, max_length=254)]


class ListPeople(Command):
    """Asks for the list that a device needs. `after`: the `more` of the portion before."""

    event_id: EventId
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class ListScans(Command):
    """Asks for the scans that changed after those that a device knows."""

    event_id: EventId
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class TakeBack(Command):
    event_id: EventId
    scan_id: ScanId


class Entry(Struct, frozen=True):
    """The scan with which somebody came in.

    told_at      by the clock of the device
    stored_at    by that of the database
    """

    id: str
    device: str
    told_at: dt.datetime
    stored_at: dt.datetime


class Verdict(Struct):
    """What came of one scan. `name`: also the address, of who has told no name."""

    id: str
    say: Say
    name: str | None = None
    entry: Entry | None = None


class Head(Struct, frozen=True):
    """The event. `now` is the time of the database."""

    id: int
    organizer_id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    cancelled_at: dt.datetime | None
    now: dt.datetime

    @property
    def lists_until(self) -> dt.datetime:
        return self.datetime + dt.timedelta(hours=HOURS_OF_LIST)

    @property
    def has_list(self) -> bool:
        """Whether devices may have the list of people."""
        return self.cancelled_at is None and self.now < self.lists_until

    @property
    def has_begun(self) -> bool:
        return self.datetime <= self.now


class Counts(Struct, frozen=True):
    """How many have come. `registered` have a seat, and `seated` of them are in; `entered` counts all who are in."""

    registered: int
    seated: int
    entered: int
    doubles: int


class Shown(Struct, frozen=True):
    """A scan in a report, with the entry of the same person: which it may be itself."""

    scan: Entry
    entry: Entry | None
    name: str | None
    status: str

    @property
    def is_double(self) -> bool:
        return self.entry is not None and self.entry.id != self.scan.id


class Standing(Struct, frozen=True):
    """How a check-in stands. The lists have the newest first, and at most `SHOWN` of them.

    doubles     scans of people who were in already
    unseated    entries of people who have no seat
    latest      entries
    """

    event: Head
    counts: Counts
    doubles: list[Shown]
    unseated: list[Shown]
    latest: list[Shown]


class Found(Struct, frozen=True):
    """Somebody who was searched for. `code`: the short code of the registration."""

    name: str | None
    email: str | None
    status: str
    code: str
    entry: Entry | None


class Person(Struct, array_like=True):
    """Somebody on the list of a device.

    proofs    what the short code ends in; more than one while the secret of the service is exchanged
    state     r: seat, w: waiting list, p: pending, x: no place, n: the seat was given away
    name      of those on whom a device may have to say it
    """

    arrival: str
    proofs: list[str]
    state: Literal["r", "w", "p", "x", "n"]
    name: str | None


class People(Struct):
    """A portion of the list. `version` names its state; `more` is None with the last portion."""

    version: str
    people: list[Person]
    more: int | None
    title: str
    until: dt.datetime


class Told(Struct):
    """A scan as other devices hear of it. `arrival`: of the registration, as in the list."""

    id: str
    arrival: str
    device: str
    told_at: dt.datetime
    is_entry: bool
    is_taken_back: bool


class News(Struct):
    """What changed. `version` is that of the list; None when devices must not have one any more.

    last    to be asked for next time
    more    whether there is more already
    """

    version: str | None
    counts: Counts
    scans: list[Told]
    last: int
    more: bool
