"""Statements on scans at the entrance."""

from collections.abc import Sequence
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.check_in.model import Counts, Entry, Head, Shown, Told
from holdfast.events.registrations.model import NAME
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller

SHOWN = 200
"""The most scans in a list of a report."""

LABEL: LiteralString = f"coalesce({NAME}, users.email)"
"""What the entrance calls somebody. `reader` has who looks, in `seen_by`."""


def who(listed: LiteralString = "select * from registrations where event_id = %(event_id)s") -> LiteralString:
    """People of an event, as whoever is named by `seen_by` knows them. `listed`: reads some of its registrations."""
    return f"""
      from ({listed}) as registrations
     cross join (select %(seen_by)s::bigint as seen_by) as reader
     cross join lateral (select * from users where users.id = registrations.user_id limit 1) as users
     where registrations.event_id = %(event_id)s
       -- Whose event it is was looked up before. Here it is asked for once more, so that a mistake there shows nobody.
       and exists (select from events where id = %(event_id)s and (seen_by is null or organizer_id = seen_by))
"""


HEAD: LiteralString = """
    select id, organizer_id, title, datetime, timezone, cancelled_at, now() as now from events where id = %(id)s
"""


class Registered(Struct, frozen=True):
    """A registration, as the entrance needs it."""

    user_id: int
    public_id: str
    arrival: int
    status: str
    reason: str | None
    name: str | None


class Kept(Struct, frozen=True):
    """A scan that is to be stored."""

    place: int
    id: str
    user_id: int
    told_at: int


async def find_event(reader: Reader, event_id: int) -> Head | None:
    return await reader.row(Head, HEAD, {"id": event_id})


async def lock_event(tx: Tx, caller: Caller, event_id: int) -> None:
    """Lock an event of the caller: until the transaction ends, no other stores its scans, or moves its seats."""
    await tx.run(
        """
        select from events where id = %(id)s and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)
           for no key update
        """,
        {"id": event_id, "seen_by": caller.tenant_id},
    )


async def find_registered(reader: Reader, caller: Caller, event_id: int, arrivals: Sequence[int]) -> list[Registered]:
    """Those of the registrations of an event that have one of these arrivals."""
    return await reader.rows(
        Registered,
        f"""
        select registrations.user_id, users.public_id, arrival, status::text, reason, {LABEL} as name
        {who()} and arrival = any(%(arrivals)s)
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id, "arrivals": list(arrivals)},
    )


async def store(tx: Tx, event_id: int, device: str, scans: Sequence[Kept]) -> None:
    """Store scans of a locked event, in their order. The first of a registration is its entry.

    A scan that is stored already stays as it is. Nobody believes a device that it is later than now.
    """
    await tx.run(
        """
        with told as (
            select told.*, row_number() over (partition by user_id order by place) as turn
              from json_to_recordset(%(scans)s::json) as told (place integer, id uuid, user_id bigint, told_at bigint)
             where not exists (select from check_in_scans where event_id = %(event_id)s and id = told.id))
        insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)
        select %(event_id)s, id, user_id, %(device)s,
               least(greatest(to_timestamp(greatest(told_at, 0) / 1000.0), now() - interval '30 days'), now()),
               turn = 1 and not exists (select from check_in_scans as earlier
                                         where event_id = %(event_id)s and earlier.user_id = told.user_id and is_entry)
          from told order by place
        """,
        {"event_id": event_id, "device": device, "scans": msgspec.json.encode(scans).decode()},
    )


SCANS: LiteralString = f"""
    select scan.id::text, scan.device, scan.told_at, scan.stored_at,
           entry.id::text, entry.device, entry.told_at, entry.stored_at,
           {LABEL} as name, registrations.status::text, scan.taken_back_at is not null, scan.number
      from check_in_scans as scan
     cross join (select %(seen_by)s::bigint as seen_by) as reader
     cross join lateral (select * from registrations
                          where event_id = scan.event_id and user_id = scan.user_id limit 1) as registrations
     cross join lateral (select * from users where id = scan.user_id limit 1) as users
      left join lateral (select * from check_in_scans
                          where event_id = scan.event_id and user_id = scan.user_id and is_entry limit 1)
           as entry on true
     where scan.event_id = %(event_id)s
       and exists (select from events where id = %(event_id)s and (seen_by is null or organizer_id = seen_by))
"""


def _shown(row: Sequence[Any]) -> Shown:
    return Shown(Entry(*row[:4]), None if row[4] is None else Entry(*row[4:8]), row[8], row[9])


async def find_scans(
    reader: Reader, caller: Caller, event_id: int, ids: Sequence[str]
) -> dict[str, tuple[Shown, bool]]:
    """Those of the scans that are stored, by their ids, each with whether it was taken back."""
    rows = await reader.tuples(
        f"{SCANS} and scan.id = any(%(ids)s::uuid[])",
        {"seen_by": caller.tenant_id, "event_id": event_id, "ids": list(ids)},
    )
    return {row[0]: (_shown(row), row[10]) for row in rows}


async def list_scans(reader: Reader, caller: Caller, event_id: int, which: LiteralString) -> list[Shown]:
    """The newest of some scans of an event."""
    rows = await reader.tuples(
        f"{SCANS} and scan.taken_back_at is null and {which} order by scan.number desc limit %(limit)s",
        {"seen_by": caller.tenant_id, "event_id": event_id, "limit": SHOWN},
    )
    return [_shown(row) for row in rows]


async def count(reader: Reader, caller: Caller, event_id: int) -> Counts:
    found = await reader.row(
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
    return found or Counts(0, 0, 0, 0)


async def take_back(tx: Tx, event_id: int, scan_id: str) -> bool:
    """Undo a scan of a locked event. Another scan of the person becomes the entry. Returns whether it was there."""
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


async def list_changed(reader: Reader, caller: Caller, event_id: int, after: int, limit: int) -> list[tuple[int, Told]]:
    """The scans of an event that changed later, in the order of their changes."""
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
    return [(changed, Told(*each)) for changed, *each in rows]


async def version(reader: Reader, event_id: int) -> str:
    """A name for the state of the list: it changes with who is on it, with their names and with how they stand."""
    return await reader.value(
        """
        select count(*) || '-' || coalesce(bit_xor(hashtextextended(
                   arrival || ' ' || status || ' ' || coalesce(reason, '') || ' ' || coalesce(name, ''), 0)), 0)
          from registrations where event_id = %(event_id)s
        """,
        {"event_id": event_id},
    )


async def list_people(reader: Reader, caller: Caller, event_id: int, after: int, limit: int) -> list[Registered]:
    """Everybody who asked for a seat, a portion at a time."""
    return await reader.rows(
        Registered,
        f"""
        select registrations.user_id, users.public_id, arrival, status::text, reason,
               case when status in ('registered', 'waitlisted') or reason = 'no_show' then {LABEL} end as name
        {who()} and registrations.user_id > %(after)s order by registrations.user_id limit %(limit)s
        """,
        {"seen_by": caller.tenant_id, "event_id": event_id, "after": after, "limit": limit},
    )
