"""The operations of check-in: by a scanned or typed code, by name, and by hand from a list. The console calls them.

They have no routes and no tools.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal, LiteralString

from msgspec import Struct

from holdfast.accounts.addresses import canonical
from holdfast.events.check_in import sql
from holdfast.events.check_in.model import (
    ANSWER_BATCH_SIZE,
    CheckInChanges,
    CheckInEvent,
    CheckInStatus,
    Device,
    DeviceListPerson,
    FindPeople,
    GetCheckInStatus,
    ListChanges,
    ListPeople,
    PeopleBatch,
    PersonMatch,
    StoredScan,
    StoreScans,
    TakeBack,
    Verdict,
    VerdictCode,
)
from holdfast.events.check_in.sql import CheckInRegistration, people_of_event
from holdfast.events.registrations import links, substring_search
from holdfast.events.registrations.bulk_changes import BulkCommand, BulkResult, SkipReason
from holdfast.events.registrations.entrance_code import ShortCode, parse_short_code, short_code
from holdfast.events.registrations.links import OWN_PAGE, Link
from holdfast.events.registrations.model import PERSON_NAME
from holdfast.events.registrations.refusals import REFUSALS
from holdfast.events.registrations.substring_search import TEXT_CONDITION
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.security.service_secret import Secret

StatusLetter = Literal["r", "w", "p", "x"]

LETTERS: Mapping[str, StatusLetter] = {
    "registered": "r",
    "waitlisted": "w",
    "pending": "p",
    "in_draw": "p",
    "rejected": "x",
}


class CodeReading(Struct, frozen=True):
    """The registration that a text names.

    arrival      the arrival number of the registration; 0 if the text names none of this event
    otherwise    the verdict if no registration of the event matches
    """

    arrival: int
    otherwise: VerdictCode
    typed: ShortCode | None = None
    link: Link | None = None

    def proves(self, secret: Secret, event_id: int, registration: CheckInRegistration) -> bool:
        """Whether the text is the code of the registration, whose arrival number is the same."""
        if self.link:
            return self.link.public_id == registration.public_id
        return self.typed in short_codes(secret, event_id, registration.public_id, registration.arrival)


def read_code(secret: Secret, event_id: int, text: str) -> CodeReading:
    """The registration that a text names at the entrance of an event."""
    # The address may have a language in its query, or no host.
    link_text = text.strip().rpartition(f"{links.REGISTRATIONS_PATH}/")[2].partition("?")[0].partition("#")[0]
    if link := links.read(secret, OWN_PAGE, link_text):
        if link.event_id != event_id:
            return CodeReading(0, "other_event")
        return CodeReading(link.arrival, "removed", link=link)
    typed_code = parse_short_code(text)
    return CodeReading(typed_code.arrival if typed_code else 0, "unknown", typed=typed_code)


def short_codes(secret: Secret, event_id: int, public_id: str, arrival: int) -> list[ShortCode]:
    """The short codes of a registration: one, or two during a rotation of the secret of the service."""
    return [
        short_code(link_text) for link_text in links.valid_texts(secret, OWN_PAGE, Link(event_id, public_id, arrival))
    ]


def verdict_without_seat(registration: CheckInRegistration) -> VerdictCode:
    """The verdict for a registration without a seat."""
    if registration.reason == "no_show":
        return "no_show"
    if registration.status == "in_draw":
        return "pending"
    if registration.status in {"waitlisted", "pending"}:
        return registration.status  # pyright: ignore[reportReturnType]
    return "rejected"


MAX_MATCHES = 20

OF_EVENT: Sequence[LiteralString] = [
    f"event_id = %(event_id)s and status = {status}"
    for status in ("'pending'", "'in_draw'", "'held'", "'registered'", "'waitlisted'", "'rejected'")
]
"""The registrations of an event, by status: its index has those of each status in order, whatever statistics say."""

ORDER: LiteralString = "status, received_at, arrival"
"""The order of the index on the registrations of an event."""


async def match_people(tx: Tx, caller: Caller, event_id: int, text: str) -> list[PersonMatch]:
    """The people of an event whose name or mail address contains the text; people with a seat come first."""
    search_text = canonical(text)
    params = {"seen_by": caller.tenant_id, "event_id": event_id, "text": search_text, "limit": MAX_MATCHES}

    async def read(registration_query: LiteralString) -> list[tuple[Any, ...]]:
        return await tx.tuples(
            f"""
            select person.name, email, status, public_id, arrival,
                   entry.id::text, entry.device, entry.told_at, entry.stored_at
              from (select {PERSON_NAME} as name, users.email, status::text, users.public_id, arrival,
                           registrations.user_id
                    {people_of_event(registration_query)} {TEXT_CONDITION}
                     order by {ORDER} limit %(limit)s) as person
              left join lateral (select * from check_in_scans
                                  where event_id = %(event_id)s and user_id = person.user_id and is_entry limit 1)
                   as entry on true
            """,
            params,
        )

    rows = await substring_search.search(tx, event_id, search_text, OF_EVENT, ORDER, MAX_MATCHES, read)
    secret = tx.resources.secret
    return [
        PersonMatch(
            name,
            email,
            status,
            str(short_codes(secret, event_id, public_id, arrival)[0]),
            None if entry[0] is None else StoredScan(*entry),
        )
        for name, email, status, public_id, arrival, *entry in rows
    ]


async def find_event(reader: Reader, caller: Caller, event_id: int) -> CheckInEvent:
    """The event of a check-in. Raises `not_found`, and `forbidden` if it is not the caller's."""
    head = await sql.find_event(reader, event_id)
    if head is None or not caller.may_access(head.organizer_id):
        raise REFUSALS["forbidden" if head else "not_found"](event_id)
    return head


@refuses(NOT_FOUND, FORBIDDEN)
async def store_scans(tx: Tx, caller: Caller, command: StoreScans) -> list[Verdict]:
    """Store the scans of a device. Returns a verdict on each.

    The first stored scan of a registration is its entry and stays its entry; later ones are double entries. A repeated
    scan changes nothing. A scan is stored if the person has a seat, or if a device has let the person in, even if the
    seat was lost meanwhile.
    """
    event = await find_event(tx, caller, command.event_id)
    await sql.lock_event(tx, caller, command.event_id)
    secret = tx.resources.secret
    readings = {scan.id: read_code(secret, event.id, scan.text) for scan in command.scans}
    arrivals = [reading.arrival for reading in readings.values() if reading.arrival]
    registration_by_arrival = {row.arrival: row for row in await sql.find_by_arrival(tx, caller, event.id, arrivals)}
    registration_of_scan = {
        id: registration
        for id, reading in readings.items()
        if (registration := registration_by_arrival.get(reading.arrival))
        and reading.proves(secret, event.id, registration)
    }
    new_scans = [
        sql.NewScan(index, scan.id, registration_of_scan[scan.id].user_id, scan.told_at)
        for index, scan in enumerate(command.scans)
        if scan.id in registration_of_scan
        and (scan.let_in or (registration_of_scan[scan.id].status == "registered" and not event.cancelled_at))
    ]
    if new_scans:
        await sql.insert_scans(tx, event.id, command.device, new_scans)
    stored_scans = await sql.find_scans(tx, caller, event.id, [scan.id for scan in command.scans])
    return [
        _verdict_of_stored(id, *stored_scans[id])
        if id in stored_scans
        else _verdict_of_others(event, id, reading, registration_of_scan.get(id))
        for id, reading in readings.items()
    ]


@refuses(NOT_FOUND, FORBIDDEN)
async def read_status(reader: Reader, caller: Caller, command: GetCheckInStatus) -> CheckInStatus:
    """Read the status of a check-in: how many people have entered, and the scans that need attention."""
    event = await find_event(reader, caller, command.event_id)
    return CheckInStatus(
        event,
        await sql.count_people(reader, caller, event.id),
        doubles=await sql.list_scans(reader, caller, event.id, "not scan.is_entry"),
        unseated=await sql.list_scans(reader, caller, event.id, "scan.is_entry and status <> 'registered'"),
        latest=await sql.list_scans(reader, caller, event.id, "scan.is_entry"),
    )


@refuses(NOT_FOUND, FORBIDDEN)
async def find(tx: Tx, caller: Caller, command: FindPeople) -> list[PersonMatch]:
    """Find people of an event by a part of their name or address."""
    event = await find_event(tx, caller, command.event_id)
    return await match_people(tx, caller, event.id, command.text)


@refuses(NOT_FOUND, FORBIDDEN)
async def take_back(tx: Tx, caller: Caller, command: TakeBack) -> None:
    """Undo a scan of a wrong person. If it was the entry, the next scan of that person becomes the entry."""
    await find_event(tx, caller, command.event_id)
    await sql.lock_event(tx, caller, command.event_id)
    if not await sql.take_back(tx, command.event_id, command.scan_id):
        raise NOT_FOUND("There is no such scan.")


@refuses(NOT_FOUND, FORBIDDEN)
async def list_people(reader: Reader, caller: Caller, command: ListPeople) -> PeopleBatch:
    """Read a batch of the list that devices store. The list is empty when devices must not have it any more."""
    event = await find_event(reader, caller, command.event_id)
    # The version is read before the list: if the list changes meanwhile, the device requests it again.
    version = await sql.version_of_list(reader, event.id)
    rows = []
    if event.has_list:
        rows = await sql.list_people(reader, caller, event.id, command.after, ANSWER_BATCH_SIZE + 1)
    secret = reader.resources.secret
    batch = [
        DeviceListPerson(
            str(row.arrival),
            [code.proof for code in short_codes(secret, event.id, row.public_id, row.arrival)],
            "n" if row.reason == "no_show" else LETTERS[row.status],
            row.name,
        )
        for row in rows[:ANSWER_BATCH_SIZE]
    ]
    more = rows[ANSWER_BATCH_SIZE - 1].user_id if len(rows) > ANSWER_BATCH_SIZE else None
    return PeopleBatch(version, batch, more, event.title, event.lists_until)


@refuses(NOT_FOUND, FORBIDDEN)
async def list_changes(reader: Reader, caller: Caller, command: ListChanges) -> CheckInChanges:
    """Read the changes for devices: scans that were stored or undone, and the version of the list."""
    event = await find_event(reader, caller, command.event_id)
    rows = await sql.list_changes(reader, caller, event.id, command.after, ANSWER_BATCH_SIZE + 1)
    batch = rows[:ANSWER_BATCH_SIZE]
    return CheckInChanges(
        version=await sql.version_of_list(reader, event.id) if event.has_list else None,
        counts=await sql.count_people(reader, caller, event.id),
        scans=[change for _, change in batch],
        last=batch[-1][0] if batch else command.after,
        more=len(rows) > ANSWER_BATCH_SIZE,
    )


def _verdict_of_stored(id: str, scan: sql.ScanWithEntry, is_undone: bool) -> Verdict:
    if is_undone:
        return Verdict(id, "taken_back", scan.name, scan.entry)
    if scan.is_double:
        return Verdict(id, "double", scan.name, scan.entry)
    return Verdict(id, "in" if scan.status == "registered" else "in_without_seat", scan.name, scan.entry)


def _verdict_of_others(
    event: CheckInEvent, id: str, reading: CodeReading, registration: sql.CheckInRegistration | None
) -> Verdict:
    if registration is None:
        return Verdict(id, reading.otherwise)
    if event.cancelled_at:
        return Verdict(id, "event_cancelled", registration.name)
    return Verdict(id, verdict_without_seat(registration), registration.name)


STORE_SCANS = Operation("store_scans", None, single(store_scans))
READ_STATUS = Operation("get_check_in", None, read(read_status))
FIND_PEOPLE = Operation("find_people_to_check_in", None, single(find))
TAKE_BACK = Operation("take_back_scan", None, single(take_back))
LIST_PEOPLE = Operation("list_people_to_check_in", None, read(list_people))
LIST_CHANGES = Operation("list_news_of_check_in", None, read(list_changes))
OPERATIONS = (STORE_SCANS, READ_STATUS, FIND_PEOPLE, TAKE_BACK, LIST_PEOPLE, LIST_CHANGES)


class CheckInPeople(BulkCommand):
    """Asks to check people in. `device`: the name that others see at the entry."""

    device: Device


SELECTED_PEOPLE: LiteralString = """
    select chosen.public_id, person.id, coalesce(registration.status::text, 'gone'), entry.number is not null
      from unnest(%(user_ids)s::text[]) with ordinality as chosen (public_id, turn)
      left join lateral (select id from users where public_id = chosen.public_id limit 1) as person on true
      left join lateral (select status from registrations
                          where event_id = %(event_id)s and user_id = person.id limit 1) as registration on true
      left join lateral (select number from check_in_scans
                          where event_id = %(event_id)s and user_id = person.id and is_entry limit 1) as entry on true
     order by turn
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def check_in(tx: Tx, caller: Caller, command: CheckInPeople) -> BulkResult:
    """Store the entry of each person who has a seat and is not in yet."""
    # Locked first: an event that is handed over or cancelled at the same time is seen as it is then.
    await sql.lock_event(tx, caller, command.event_id)
    event = await find_event(tx, caller, command.event_id)
    params = {"event_id": event.id, "user_ids": list(dict.fromkeys(command.user_ids))}
    now = time.time_ns() // 1_000_000
    result, scans = BulkResult([], {}), list[sql.NewScan]()
    rows: list[tuple[str, int, SkipReason, bool]] = await tx.tuples(SELECTED_PEOPLE, params)
    for public_id, user_id, status, has_entered in rows:
        if status == "registered" and not has_entered and not event.cancelled_at:
            result.done.append(public_id)
            scans.append(sql.NewScan(len(scans), str(uuid.uuid4()), user_id, now))
        elif status == "registered":
            result.skipped[public_id] = "entered" if has_entered else "event_cancelled"
        else:
            result.skipped[public_id] = status
    if scans:
        await sql.insert_scans(tx, event.id, command.device, scans)
    return result


CHECK_IN_PEOPLE = Operation("check_in_people", None, single(check_in))
"""An operation of the console alone: it has no route of the API and no tool."""
