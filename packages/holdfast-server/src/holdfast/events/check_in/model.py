"""Check-in: the commands of devices at the entrance, and the answers to them."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.paths import EventId
from holdfast.kit.contract.command import Command, rule

MAX_SCANS_PER_REQUEST = 100
"""The most scans that a device sends in one request."""

ANSWER_BATCH_SIZE = 5_000
"""The most people, or scans, in one answer to a device."""

HOURS_OF_LIST = 24
"""The hours after the beginning of an event during which devices may have its list."""

ScanId = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$(?!\n)")]
Device = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$(?!\n)")]

VerdictCode = Literal[
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
"""The code of a verdict, which a scanner shows.

in                 let this person in; also the answer to a repeated scan
double             a person has already entered with this code
in_without_seat    a device that did not know that the seat was lost has let the person in
taken_back         this scan was undone by hand
waitlisted         the person is on the waiting list; the next codes are other reasons for no seat
no_show            the person did not come in time, so the seat was given away
removed            a valid code of this event, of a registration that no longer exists
other_event        a valid code of another event
unknown            no code of this event
"""


class Scan(Struct):
    """A scan that a device sends.

    id         the id that the device has made
    text       the text of a QR code, or a typed text
    told_at    the time of the scan by the clock of the device, in milliseconds since 1970
    let_in     whether the device has let the person in
    """

    id: ScanId
    text: Annotated[str, Meta(max_length=600)]
    told_at: Annotated[int, Meta(ge=-8_640_000_000_000_000, le=8_640_000_000_000_000)]
    let_in: bool = False


class StoreScans(Command):
    event_id: EventId
    device: Device
    scans: Annotated[list[Scan], Meta(min_length=1, max_length=MAX_SCANS_PER_REQUEST)]

    @rule("scans")
    def _has_distinct_ids(self) -> str | None:
        return None if len({scan.id for scan in self.scans}) == len(self.scans) else "must have different ids"


class GetCheckInStatus(Command):
    """Asks for the status of the check-in of an event."""

    event_id: EventId


class FindPeople(Command):
    """Asks for people whose name or address contains a text."""

    event_id: EventId
    text: Annotated[str, Meta(min_length=1, max_length=254)]


class ListPeople(Command):
    """Asks for a batch of the list for devices. `after`: the `more` of the batch before."""

    event_id: EventId
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class ListChanges(Command):
    """Asks for the changes that a device does not have yet. `after`: the `last` of the answer before."""

    event_id: EventId
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class TakeBack(Command):
    """Asks to undo a scan."""

    event_id: EventId
    scan_id: ScanId


class StoredScan(Struct, frozen=True):
    """A stored scan, such as the entry of a person.

    told_at      the time by the clock of the device
    stored_at    the time by the clock of the database
    """

    id: str
    device: str
    told_at: dt.datetime
    stored_at: dt.datetime


class Verdict(Struct):
    """The verdict on one scan. `name`: the name of the person, or the mail address if there is no name."""

    id: str
    say: VerdictCode
    name: str | None = None
    entry: StoredScan | None = None


class CheckInEvent(Struct, frozen=True):
    """The event of a check-in. `now` is the time of the database."""

    id: int
    organizer_id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    pricing_mode: str
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
    """The numbers of people at the entrance.

    registered    people with a seat, whether they have entered or not
    seated        people with a seat who have entered
    entered       all people who have entered, also those who have lost their seat
    doubles       scans of people who had already entered
    """

    registered: int
    seated: int
    entered: int
    doubles: int


class ScanWithEntry(Struct, frozen=True):
    """A scan in a report, with the entry of the same person. Both may be the same scan."""

    scan: StoredScan
    entry: StoredScan | None
    name: str | None
    status: str

    @property
    def is_double(self) -> bool:
        return self.entry is not None and self.entry.id != self.scan.id


class CheckInStatus(Struct, frozen=True):
    """The status of a check-in. The lists are newest first, with at most `sql.MAX_LISTED_SCANS` scans.

    doubles     scans of people who had already entered
    unseated    entries of people without a seat
    latest      all entries
    """

    event: CheckInEvent
    counts: Counts
    doubles: list[ScanWithEntry]
    unseated: list[ScanWithEntry]
    latest: list[ScanWithEntry]


class PersonMatch(Struct, frozen=True):
    """A person that a search has matched. `code`: the short code of the registration."""

    name: str | None
    email: str | None
    status: str
    code: str
    entry: StoredScan | None


class DeviceListPerson(Struct, array_like=True):
    """A person on the list of a device.

    proofs    the ends of the short code: one, or more during a rotation of the secret of the service
    state     r: seat, w: waiting list, p: pending, x: no place, n: the seat was given away
    name      only for states in which a device may have to show it
    """

    arrival: str
    proofs: list[str]
    state: Literal["r", "w", "p", "x", "n"]
    name: str | None


class PeopleBatch(Struct):
    """A batch of the list. `version` is that of the whole list; `more` is None in the last batch."""

    version: str
    people: list[DeviceListPerson]
    more: int | None
    title: str
    until: dt.datetime


class ScanChange(Struct):
    """A scan that was stored or undone, for other devices.

    arrival      the arrival number of the registration, as in the list
    is_undone    whether the scan was undone
    """

    id: str
    arrival: str
    device: str
    told_at: dt.datetime
    is_entry: bool
    is_undone: bool


class CheckInChanges(Struct):
    """The changes of a check-in. `version` is that of the list; None if devices must not have the list any more.

    last    the `after` of the next request
    more    whether there are more changes already
    """

    version: str | None
    counts: Counts
    scans: list[ScanChange]
    last: int
    more: bool
