"""What can be done at the entrance of an event. No operation has a route or a tool: the console calls them."""

from holdfast.events.check_in import finding, reading, sql
from holdfast.events.check_in.model import (
    PORTION,
    FindPeople,
    Found,
    Head,
    ListPeople,
    ListScans,
    LookAtCheckIn,
    News,
    People,
    Person,
    Standing,
    StoreScans,
    TakeBack,
    Verdict,
)
from holdfast.events.check_in.reading import Understood
from holdfast.events.registrations.operations import REFUSALS
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, refuses


async def find_event(reader: Reader, caller: Caller, event_id: int) -> Head:
    """The event, if it is the caller's. Raises `not_found` and `forbidden`."""
    head = await sql.find_event(reader, event_id)
    if head is None or not caller.may_access(head.organizer_id):
        raise REFUSALS["forbidden" if head else "not_found"](event_id)
    return head


@refuses(NOT_FOUND, FORBIDDEN)
async def scan(tx: Tx, caller: Caller, command: StoreScans) -> list[Verdict]:
    """Store what a device has read, and say what it means.

    Of the scans of one registration, that which was stored first is its entry and stays it; later ones are double
    entries. A scan that comes again changes nothing. What is stored are the scans of people with a seat, and those of
    people whom a device has let in, whatever has become of their seats meanwhile.
    """
    event = await find_event(tx, caller, command.event_id)
    await sql.lock_event(tx, caller, command.event_id)
    secret = tx.resources.secret
    understood = {each.id: reading.understand(secret, event.id, each.text) for each in command.scans}
    arrivals = [each.arrival for each in understood.values() if each.arrival]
    registered = {each.arrival: each for each in await sql.find_registered(tx, caller, event.id, arrivals)}
    meant = {
        id: found
        for id, each in understood.items()
        if (found := registered.get(each.arrival)) and each.proves(secret, event.id, found)
    }
    kept = [
        sql.Kept(place, each.id, meant[each.id].user_id, each.told_at)
        for place, each in enumerate(command.scans)
        if each.id in meant and (each.let_in or (meant[each.id].status == "registered" and not event.cancelled_at))
    ]
    if kept:
        await sql.store(tx, event.id, command.device, kept)
    stored = await sql.find_scans(tx, caller, event.id, [each.id for each in command.scans])
    return [
        _of_stored(id, *stored[id]) if id in stored else _of_others(event, id, each, meant.get(id))
        for id, each in understood.items()
    ]


@refuses(NOT_FOUND, FORBIDDEN)
async def look(reader: Reader, caller: Caller, command: LookAtCheckIn) -> Standing:
    """Read how a check-in stands: how many are in, and a report of what somebody should look at."""
    event = await find_event(reader, caller, command.event_id)
    return Standing(
        event,
        await sql.count(reader, caller, event.id),
        doubles=await sql.list_scans(reader, caller, event.id, "not scan.is_entry"),
        unseated=await sql.list_scans(reader, caller, event.id, "scan.is_entry and status <> 'registered'"),
        latest=await sql.list_scans(reader, caller, event.id, "scan.is_entry"),
    )


@refuses(NOT_FOUND, FORBIDDEN)
async def find(tx: Tx, caller: Caller, command: FindPeople) -> list[Found]:
    """Find people of an event by a part of their name or address."""
    event = await find_event(tx, caller, command.event_id)
    return await finding.find(tx, caller, event.id, command.text)


@refuses(NOT_FOUND, FORBIDDEN)
async def take_back(tx: Tx, caller: Caller, command: TakeBack) -> None:
    """Undo a scan: the wrong person was scanned. If it was an entry, the next scan of that person becomes the entry."""
    await find_event(tx, caller, command.event_id)
    await sql.lock_event(tx, caller, command.event_id)
    if not await sql.take_back(tx, command.event_id, command.scan_id):
        raise NOT_FOUND("There is no such scan.")


@refuses(NOT_FOUND, FORBIDDEN)
async def people(reader: Reader, caller: Caller, command: ListPeople) -> People:
    """Read a portion of the list that a device keeps. It is empty when devices need it no more."""
    event = await find_event(reader, caller, command.event_id)
    # Read before the list: if somebody changes it meanwhile, the device asks once more.
    version = await sql.version(reader, event.id)
    rows = []
    if event.has_list:
        rows = await sql.list_people(reader, caller, event.id, command.after, PORTION + 1)
    secret = reader.resources.secret
    portion = [
        Person(
            str(each.arrival),
            [code.proof for code in reading.codes(secret, event.id, each.public_id, each.arrival)],
            "n" if each.reason == "no_show" else reading.LETTERS[each.status],
            each.name,
        )
        for each in rows[:PORTION]
    ]
    more = rows[PORTION - 1].user_id if len(rows) > PORTION else None
    return People(version, portion, more, event.title, event.lists_until)


@refuses(NOT_FOUND, FORBIDDEN)
async def news(reader: Reader, caller: Caller, command: ListScans) -> News:
    """Read what devices do not know yet: scans that were stored or taken back, and whether the list has changed."""
    event = await find_event(reader, caller, command.event_id)
    rows = await sql.list_changed(reader, caller, event.id, command.after, PORTION + 1)
    portion = rows[:PORTION]
    return News(
        version=await sql.version(reader, event.id) if event.has_list else None,
        counts=await sql.count(reader, caller, event.id),
        scans=[told for _, told in portion],
        last=portion[-1][0] if portion else command.after,
        more=len(rows) > PORTION,
    )


def _of_stored(id: str, shown: sql.Shown, is_taken_back: bool) -> Verdict:
    if is_taken_back:
        return Verdict(id, "taken_back", shown.name, shown.entry)
    if shown.is_double:
        return Verdict(id, "double", shown.name, shown.entry)
    return Verdict(id, "in" if shown.status == "registered" else "in_without_seat", shown.name, shown.entry)


def _of_others(event: Head, id: str, understood: Understood, found: sql.Registered | None) -> Verdict:
    if found is None:
        return Verdict(id, understood.otherwise)
    if event.cancelled_at:
        return Verdict(id, "event_cancelled", found.name)
    return Verdict(id, reading.without_seat(found), found.name)


SCAN = Operation("store_scans", None, single(scan))
LOOK = Operation("look_at_check_in", None, read(look))
FIND = Operation("find_people_to_check_in", None, single(find))
TAKE_BACK = Operation("take_back_scan", None, single(take_back))
PEOPLE = Operation("list_people_to_check_in", None, read(people))
NEWS = Operation("list_news_of_check_in", None, read(news))
OPERATIONS = (SCAN, LOOK, FIND, TAKE_BACK, PEOPLE, NEWS)
