"""The operations of the check-in of an event. They have no routes and no tools: the console calls them."""

from holdfast.events.check_in import code_reader, search, sql
from holdfast.events.check_in.code_reader import CodeReading
from holdfast.events.check_in.model import (
    BATCH_SIZE,
    CheckInChanges,
    CheckInEvent,
    CheckInStatus,
    DeviceListPerson,
    FindPeople,
    ListChanges,
    ListPeople,
    LookAtCheckIn,
    PeopleBatch,
    PersonMatch,
    StoreScans,
    TakeBack,
    Verdict,
)
from holdfast.events.registrations.operations import REFUSALS
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import read, single


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
    readings = {scan.id: code_reader.read_code(secret, event.id, scan.text) for scan in command.scans}
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
    stored = await sql.find_scans(tx, caller, event.id, [scan.id for scan in command.scans])
    return [
        _verdict_of_stored(id, *stored[id])
        if id in stored
        else _verdict_of_others(event, id, reading, registration_of_scan.get(id))
        for id, reading in readings.items()
    ]


@refuses(NOT_FOUND, FORBIDDEN)
async def read_status(reader: Reader, caller: Caller, command: LookAtCheckIn) -> CheckInStatus:
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
    return await search.find(tx, caller, event.id, command.text)


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
        rows = await sql.list_people(reader, caller, event.id, command.after, BATCH_SIZE + 1)
    secret = reader.resources.secret
    batch = [
        DeviceListPerson(
            str(row.arrival),
            [code.proof for code in code_reader.short_codes(secret, event.id, row.public_id, row.arrival)],
            "n" if row.reason == "no_show" else code_reader.LETTERS[row.status],
            row.name,
        )
        for row in rows[:BATCH_SIZE]
    ]
    more = rows[BATCH_SIZE - 1].user_id if len(rows) > BATCH_SIZE else None
    return PeopleBatch(version, batch, more, event.title, event.lists_until)


@refuses(NOT_FOUND, FORBIDDEN)
async def list_changes(reader: Reader, caller: Caller, command: ListChanges) -> CheckInChanges:
    """Read the changes for devices: scans that were stored or undone, and the version of the list."""
    event = await find_event(reader, caller, command.event_id)
    rows = await sql.list_changes(reader, caller, event.id, command.after, BATCH_SIZE + 1)
    batch = rows[:BATCH_SIZE]
    return CheckInChanges(
        version=await sql.version_of_list(reader, event.id) if event.has_list else None,
        counts=await sql.count_people(reader, caller, event.id),
        scans=[change for _, change in batch],
        last=batch[-1][0] if batch else command.after,
        more=len(rows) > BATCH_SIZE,
    )


def _verdict_of_stored(id: str, scan: sql.ScanWithEntry, is_taken_back: bool) -> Verdict:
    if is_taken_back:
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
    return Verdict(id, code_reader.verdict_without_seat(registration), registration.name)


STORE_SCANS = Operation("store_scans", None, single(store_scans))
READ_STATUS = Operation("look_at_check_in", None, read(read_status))
FIND_PEOPLE = Operation("find_people_to_check_in", None, single(find))
TAKE_BACK = Operation("take_back_scan", None, single(take_back))
LIST_PEOPLE = Operation("list_people_to_check_in", None, read(list_people))
LIST_CHANGES = Operation("list_news_of_check_in", None, read(list_changes))
OPERATIONS = (STORE_SCANS, READ_STATUS, FIND_PEOPLE, TAKE_BACK, LIST_PEOPLE, LIST_CHANGES)
