"""SQL statements on scans at the entrance."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.check_in.model import CheckInEvent, Counts, ScanChange, ScanWithEntry, StoredScan
from holdfast.events.registrations.model import PERSON_NAME
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller

MAX_LISTED_SCANS = 200
"""The most scans in a list of the report."""

LABEL: LiteralString = f"coalesce({PERSON_NAME}, users.email)"
"""The name of a person for the entrance.

The query needs a column `seen_by`, the id of the organizer who views the name; null for admins. So it joins
`(select %(seen_by)s::bigint as seen_by) as viewer`.
"""


def people_of_event(
    registration_query: LiteralString = "select * from registrations where event_id = %(event_id)s",
) -> LiteralString:
    """The people of an event, as the organizer `seen_by` may see them: those whose registrations the query selects."""
    return f"""
      from ({registration_query}) as registrations
     cross join (select %(seen_by)s::bigint as seen_by) as viewer
     cross join lateral (select * from users where users.id = registrations.user_id limit 1) as users
     where registrations.event_id = %(event_id)s
       -- The caller has checked already that the event is the organizer's. If it forgets to, no person is shown here.
       and exists (select from events where id = %(event_id)s and (seen_by is null or organizer_id = seen_by))
"""


HEAD: LiteralString = """
    select id, organizer_id, title, datetime, timezone, pricing_mode, cancelled_at, now() as now
      from events where id = %(id)s
"""


class CheckInRegistration(Struct, frozen=True):
    """The data of a registration that the check-in needs."""

    user_id: int
    public_id: str
    arrival: int
    status: str
    reason: str | None
    name: str | None


class NewScan(Struct, frozen=True):
    """A scan to be stored."""

    index: int
    id: str
    user_id: int
    told_at: int


async def find_event(reader: Reader, event_id: int) -> CheckInEvent | None:
    return await reader.row(CheckInEvent, HEAD, {"id": event_id})


async def lock_event(tx: Tx, caller: Caller, event_id: int) -> None:
    """Lock an event of the caller: until this transaction ends, no other stores its scans or moves its seats."""
    await tx.run(
        """
        select from events where id = %(id)s and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)
           for no key update
        """,
        {"id": event_id, "seen_by": caller.tenant_id},
    )


async def find_by_arrival(
    reader: Reader, caller: Caller, event_id: int, arrivals: Sequence[int]
) -> list[CheckInRegistration]:
    """The registrations of an event with these arrival numbers, of any status."""
    return await reader.rows(
        CheckInRegistration,
        f"""
        select registrations.user_id, users.public_id, arrival, status::text, reason, {LABEL} as name
        {people_of_event()} and arrival = any(%(arrivals)s)
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id, "arrivals": list(arrivals)},
    )


async def insert_scans(tx: Tx, event_id: int, device: str, scans: Sequence[NewScan]) -> None:
    """Store scans of a locked event in their order. The first of a registration is its entry.

    A scan that is already stored is not changed. A time in the future by the clock of a device becomes the present.
    """
    await tx.run(
        """
        with scan as (
            select scan.*, row_number() over (partition by user_id order by index) as turn
              from json_to_recordset(%(scans)s::json) as scan (index integer, id uuid, user_id bigint, told_at bigint)
             where not exists (select from check_in_scans where event_id = %(event_id)s and id = scan.id))
        insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)
        select %(event_id)s, id, user_id, %(device)s,
               least(greatest(to_timestamp(greatest(told_at, 0) / 1000.0), now() - interval '30 days'), now()),
               turn = 1 and not exists (select from check_in_scans as earlier
                                         where event_id = %(event_id)s and earlier.user_id = scan.user_id and is_entry)
          from scan order by index
        """,
        {"event_id": event_id, "device": device, "scans": msgspec.json.encode(scans).decode()},
    )


SCANS: LiteralString = f"""
    select scan.id::text, scan.device, scan.told_at, scan.stored_at,
           entry.id::text as entry_id, entry.device as entry_device, entry.told_at as entry_at,
           entry.stored_at as entry_stored_at,
           {LABEL} as name, registrations.status::text, scan.taken_back_at is not null as is_undone
      from check_in_scans as scan
     cross join (select %(seen_by)s::bigint as seen_by) as viewer
     cross join lateral (select * from registrations
                          where event_id = scan.event_id and user_id = scan.user_id limit 1) as registrations
     cross join lateral (select * from users where id = scan.user_id limit 1) as users
      left join lateral (select * from check_in_scans
                          where event_id = scan.event_id and user_id = scan.user_id and is_entry limit 1)
           as entry on true
     where scan.event_id = %(event_id)s
       and exists (select from events where id = %(event_id)s and (seen_by is null or organizer_id = seen_by))
"""


class ScanRow(Struct):
    """A stored scan, and the entry of the same person. `entry_id`: None if the person has not entered."""

    id: str
    device: str
    told_at: dt.datetime
    stored_at: dt.datetime
    entry_id: str | None
    entry_device: str
    entry_at: dt.datetime
    entry_stored_at: dt.datetime
    name: str | None
    status: str
    is_undone: bool

    def with_entry(self) -> ScanWithEntry:
        return ScanWithEntry(
            StoredScan(self.id, self.device, self.told_at, self.stored_at),
            None
            if self.entry_id is None
            else StoredScan(self.entry_id, self.entry_device, self.entry_at, self.entry_stored_at),
            self.name,
            self.status,
        )


async def find_scans(
    reader: Reader, caller: Caller, event_id: int, ids: Sequence[str]
) -> dict[str, tuple[ScanWithEntry, bool]]:
    """The stored scans of these ids, by id; each with whether it was undone."""
    rows = await reader.rows(
        ScanRow,
        f"{SCANS} and scan.id = any(%(ids)s::uuid[])",
        {"seen_by": caller.tenant_id, "event_id": event_id, "ids": list(ids)},
    )
    return {row.id: (row.with_entry(), row.is_undone) for row in rows}


async def list_scans(reader: Reader, caller: Caller, event_id: int, which: LiteralString) -> list[ScanWithEntry]:
    """The newest scans of an event that meet the condition `which`."""
    rows = await reader.rows(
        ScanRow,
        f"{SCANS} and scan.taken_back_at is null and {which} order by scan.number desc limit %(limit)s",
        {"seen_by": caller.tenant_id, "event_id": event_id, "limit": MAX_LISTED_SCANS},
    )
    return [row.with_entry() for row in rows]


async def count_people(reader: Reader, caller: Caller, event_id: int) -> Counts:
    counts = await reader.row(
        Counts,
        """
        select registered_count as registered, scans.seated, scans.entered, scans.doubles
          from events
         cross join lateral (
            select count(*) filter (where is_entry) as entered,
                   count(*) filter (where is_entry and status = 'registered') as seated,
                   count(*) filter (where not is_entry and taken_back_at is null) as doubles
              from check_in_scans join registrations using (event_id, user_id)
             where event_id = events.id) as scans
         where id = %(event_id)s and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id},
    )
    return counts or Counts(0, 0, 0, 0)


async def take_back(tx: Tx, event_id: int, scan_id: str) -> bool:
    """Undo a scan of a locked event. The next scan of the person becomes the entry. Returns whether it existed."""
    user_id = await tx.value(
        """
        update check_in_scans
           set taken_back_at = coalesce(taken_back_at, clock_timestamp()), is_entry = false,
               changed = nextval('check_in_changes')
         where event_id = %(event_id)s and id = %(id)s::uuid
        returning user_id
        """,
        {"event_id": event_id, "id": scan_id},
    )
    await tx.run(
        """
        update check_in_scans set is_entry = true, changed = nextval('check_in_changes')
         where event_id = %(event_id)s
           and number = (select min(number) from check_in_scans
                          where event_id = %(event_id)s and user_id = %(user_id)s and taken_back_at is null)
           and not is_entry
        """,
        {"event_id": event_id, "user_id": user_id},
    )
    return user_id is not None


async def list_changes(
    reader: Reader, caller: Caller, event_id: int, after: int, limit: int
) -> list[tuple[int, ScanChange]]:
    """The scans of an event that were stored or undone later than `after`, in the order of these changes."""
    rows = await reader.tuples(
        """
        select changed, id::text, arrival::text, device, told_at, is_entry, taken_back_at is not null
          from check_in_scans
         cross join lateral (select arrival from registrations
                              where event_id = check_in_scans.event_id and user_id = check_in_scans.user_id limit 1)
               as registration
         where event_id = %(event_id)s and changed > %(after)s
           and exists (select from events where events.id = %(event_id)s
                          and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s))
         order by changed limit %(limit)s
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id, "after": after, "limit": limit},
    )
    return [(change_number, ScanChange(*columns)) for change_number, *columns in rows]


async def version_of_list(reader: Reader, event_id: int) -> str:
    """The version of the list: it changes when people, their names or their statuses change."""
    return await reader.value(
        """
        select count(*) || '-' || coalesce(bit_xor(hashtextextended(
                   arrival || ' ' || status || ' ' || coalesce(reason, '') || ' ' || coalesce(name, ''), 0)), 0)
          from registrations where event_id = %(event_id)s
        """,
        {"event_id": event_id},
    )


async def list_people(
    reader: Reader, caller: Caller, event_id: int, after: int, limit: int
) -> list[CheckInRegistration]:
    """A batch of all people with a registration for an event."""
    return await reader.rows(
        CheckInRegistration,
        f"""
        select registrations.user_id, users.public_id, arrival, status::text, reason,
               case when status in ('registered', 'waitlisted') or reason = 'no_show' then {LABEL} end as name
        {people_of_event()} and registrations.user_id > %(after)s order by registrations.user_id limit %(limit)s
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id, "after": after, "limit": limit},
    )
