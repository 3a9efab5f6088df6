"""Statements on registrations."""

from collections.abc import Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.registrations.model import NAME, Found, Registration
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import EMAIL

RECEIVED_AT: LiteralString = """to_char(registrations.received_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


LISTED: LiteralString = "status in ('registered', 'waitlisted')"
"""What the indexes of lists have."""


def in_order(which: Sequence[LiteralString], order: LiteralString, limit: LiteralString) -> LiteralString:
    """The first of all the registrations that meet one of some conditions, each read from an index and then merged."""
    each: LiteralString = " union all ".join(
        f"(select * from registrations where {one} order by {order} limit {limit})" for one in which
    )
    return f"select * from ({each}) as merged order by {order} limit {limit}"


async def list_registrations(
    reader: Reader, seen_by: int | None, event_id: int | None, offset: int, limit: int
) -> list[Registration]:
    """Registrations in order of arrival: for the events of one organizer, or for all with None; or for one event."""
    which: Sequence[LiteralString] = [LISTED if seen_by is None else f"organizer_id = %(seen_by)s and {LISTED}"]
    if event_id is not None:
        # The index of an event has each state in order.
        of: LiteralString = "" if seen_by is None else "organizer_id = %(seen_by)s and"
        which = [f"{of} event_id = %(event_id)s and status = {each}" for each in ("'registered'", "'waitlisted'")]
    first: LiteralString = "null as nothing"
    if offset:
        # Where the page begins is counted in the indexes alone.
        skipped = in_order(which, "received_at, arrival", "%(offset)s::bigint + 1")
        first = f"received_at, arrival from ({skipped}) as skipped order by received_at, arrival offset %(offset)s"
        which = [f"{each} and (received_at, arrival) >= (select received_at, arrival from first)" for each in which]
    return await reader.rows(
        Registration,
        f"""
        with first as materialized (select {first}),
        page as materialized ({in_order(which, "received_at, arrival", "%(limit)s")})
        select registrations.event_id || '-' || users.public_id as id, registrations.status, registrations.event_id,
               registrations.amount_paid, users.public_id as user_id, {RECEIVED_AT} as received_at,
               {EMAIL} as email, {NAME} as name
          from page as registrations
         cross join (select %(seen_by)s::bigint as seen_by) as reader
         cross join lateral (select * from users where users.id = registrations.user_id limit 1) as users
         order by registrations.received_at, registrations.arrival
        """,
        {"seen_by": seen_by, "event_id": event_id, "offset": offset, "limit": limit},
    )


async def organizer_of(reader: Reader, event_id: int) -> int | None:
    return await reader.value("select organizer_id from events where id = %(id)s", {"id": event_id})


class Asked(Struct):
    """One person at one event, as the statement reads them. `seen_by` is the organizer who asks, None for an admin."""

    place: int
    event_id: int
    user_id: str
    seen_by: int | None


# Frequent statements get their calls as one JSON array, which is written and read several times faster than arrays of
# columns. Their look-ups are lateral with `limit 1`, so that each is one index look-up. For a plain join PostgreSQL may
# plan and cache a scan while a table is small, which then gets slower with every row until the statistics are updated.

FIND: LiteralString = f"""
    select events.organizer_id, registrations.status, registrations.amount_paid, {RECEIVED_AT}, registrations.reason,
           {EMAIL}, {NAME}
      from json_to_recordset(%(asked)s::json) as asked (place integer, event_id bigint, user_id text, seen_by bigint)
      left join lateral (select id, organizer_id from events where id = asked.event_id limit 1) as events on true
      left join lateral (select * from users where public_id = asked.user_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = events.id and user_id = users.id limit 1) as registrations on true
     order by asked.place
"""


async def find_registrations(reader: Reader, asked: Sequence[tuple[int, str, int | None]]) -> list[Found | None]:
    """The registration of each (event, person, organizer who asks), in the order given; None if there is no event."""
    rows = [Asked(place, *each) for place, each in enumerate(asked)]
    found = await reader.tuples(FIND, {"asked": msgspec.json.encode(rows).decode()})
    return [
        None if organizer_id is None else Found(organizer_id, each.event_id, each.user_id, *known)
        for each, (organizer_id, *known) in zip(rows, found, strict=True)
    ]


async def lock_event_of(tx: Tx, event_id: int) -> None:
    """Lock the event: until the transaction ends, no other can settle or free its seats."""
    await tx.run("select from events where id = %(id)s for no key update", {"id": event_id})


async def has_free_seat(reader: Reader, event_id: int) -> bool:
    return bool(
        await reader.value("select registered_count < capacity from events where id = %(id)s", {"id": event_id})
    )


async def update_registration(tx: Tx, event_id: int, user_id: str, status: str, amount_paid: int) -> None:
    await tx.run(
        """
        update registrations set status = %(status)s, amount_paid = %(amount_paid)s
          from users
         where event_id = %(event_id)s and users.id = registrations.user_id and users.public_id = %(user_id)s
        """,
        {"event_id": event_id, "user_id": user_id, "status": status, "amount_paid": amount_paid},
    )


async def delete_registration(tx: Tx, event_id: int, user_id: str) -> None:
    await tx.run(
        """
        delete from registrations using users
         where event_id = %(event_id)s and users.id = registrations.user_id and users.public_id = %(user_id)s
        """,
        {"event_id": event_id, "user_id": user_id},
    )


async def promote(tx: Tx, event_ids: Sequence[int], except_user: str | None) -> bool:
    """Give the free seats of active events to the first on their waiting lists. Returns whether one has to be paid."""
    return await tx.value(
        """
        with first_waiting as (
            select waiting.* from events
             cross join lateral (
                select event_id, user_id,
                       case when amount_due is null then 'registered' else 'held' end::registration_status as status,
                       case when amount_due is not null
                            then least(now() + %(claim)s * interval '1 hour', events.datetime) end as held_until
                  from registrations
                 where event_id = events.id and status = 'waitlisted'
                   and user_id is distinct from (select id from users where public_id = %(except_user)s)
                 order by received_at, arrival limit capacity - registered_count) as waiting
             where events.id = any(%(event_ids)s) and cancelled_at is null and datetime > now()),
        promoted as (
            update registrations set status = first_waiting.status, held_until = first_waiting.held_until
              from first_waiting
             where registrations.event_id = first_waiting.event_id and registrations.user_id = first_waiting.user_id
         returning registrations.status)
        select exists (select from promoted where status = 'held')
        """,
        {
            "event_ids": list(event_ids),
            "except_user": except_user,
            "claim": tx.resources.settings.claim_hours,
        },
    )


async def delete_old_rejections(tx: Tx, limit: int) -> int:
    """Delete rejections if both the settlement and the event's date are more than 30 days ago."""
    return await tx.value(
        """
        with old as (
            select registrations.event_id, registrations.user_id
              from registrations join events on events.id = registrations.event_id
             where registrations.status = 'rejected'
               and greatest(events.datetime, registrations.settled_at) < now() - interval '30 days'
             limit %(limit)s for update of registrations skip locked),
        deleted as (
            delete from registrations using old
             where registrations.event_id = old.event_id and registrations.user_id = old.user_id
         returning 1)
        select count(*) from deleted
        """,
        {"limit": limit},
    )


async def find_registrants(reader: Reader, after: int, limit: int) -> dict[int, bool]:
    """The next accounts after an id, each with whether it is still needed."""
    rows = await reader.tuples(
        """
        select id, role <> 'user' or slug is not null or password_hash is not null
                   or inserted_at > now() - interval '1 day'
                   or coalesce((select true from registrations where user_id = users.id limit 1), false)
          from users where id > %(after)s order by id limit %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return dict(rows)


async def delete_registrants(tx: Tx, ids: Sequence[int]) -> int:
    """Delete those of the accounts that have no registration. Returns how many were deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from users
             where id = any(array(select id from users where id = any(%(ids)s) and role = 'user'
                                   order by id for update skip locked))
               and (select true from registrations where user_id = users.id limit 1) is null
         returning 1)
        select count(*) from deleted
        """,
        {"ids": list(ids)},
    )
