"""Statements on registrations."""

from collections.abc import Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.hand_over_conditions import of_organizer
from holdfast.events.log.model import Changer, changed_by
from holdfast.events.registrations.model import PERSON_NAME, Registration, RegistrationMatch
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import PERSON_EMAIL

RECEIVED_AT: LiteralString = """to_char(registrations.received_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


IS_LISTED: LiteralString = "status in ('registered', 'waitlisted')"
"""The condition of the indexes that lists use."""


def in_order(conditions: Sequence[LiteralString], order: LiteralString, limit: LiteralString) -> LiteralString:
    """A select of the first registrations that meet one of the conditions, each read from an index and then merged."""
    parts: LiteralString = " union all ".join(
        f"(select * from registrations where {condition} order by {order} limit {limit})" for condition in conditions
    )
    return f"select * from ({parts}) as merged order by {order} limit {limit}"


async def list_registrations(
    reader: Reader, seen_by: int | None, event_id: int | None, offset: int, limit: int
) -> list[Registration]:
    """Registrations in order of arrival: of one organizer's events, of all with None, or of one event."""
    conditions: Sequence[LiteralString] = [IS_LISTED] if seen_by is None else of_organizer(IS_LISTED)
    if event_id is not None:
        # The index of an event has the rows of each status in order.
        its_organizer: LiteralString = "(select organizer_id from events where id = %(event_id)s) = %(seen_by)s and"
        of: LiteralString = "" if seen_by is None else its_organizer
        conditions = [
            f"{of} event_id = %(event_id)s and status = {status}" for status in ("'registered'", "'waitlisted'")
        ]
    first_row: LiteralString = "null as nothing"
    if offset:
        # The beginning of the page is counted in the indexes alone.
        skipped = in_order(conditions, "received_at, arrival", "%(offset)s::bigint + 1")
        first_row = f"received_at, arrival from ({skipped}) as skipped order by received_at, arrival offset %(offset)s"
        conditions = [
            f"{condition} and (received_at, arrival) >= (select received_at, arrival from first_row)"
            for condition in conditions
        ]
    return await reader.rows(
        Registration,
        f"""
        with first_row as materialized (select {first_row}),
        registrations_on_page as materialized ({in_order(conditions, "received_at, arrival", "%(limit)s")})
        select registrations.event_id || '-' || users.public_id as id, registrations.status, registrations.event_id,
               registrations.amount_paid, users.public_id as user_id, {RECEIVED_AT} as received_at,
               {PERSON_EMAIL} as email, {PERSON_NAME} as name
          from registrations_on_page as registrations
         cross join (select %(seen_by)s::bigint as seen_by) as viewer
         cross join lateral (select * from users where users.id = registrations.user_id limit 1) as users
         order by registrations.received_at, registrations.arrival
        """,
        {"seen_by": seen_by, "event_id": event_id, "offset": offset, "limit": limit},
    )


async def organizer_of(reader: Reader, event_id: int) -> int | None:
    return await reader.value("select organizer_id from events where id = %(id)s", {"id": event_id})


class RegistrationKey(Struct):
    """One person and one event, as the statement reads them. `seen_by` is the calling organizer, None for an admin."""

    index: int
    event_id: int
    public_id: str
    seen_by: int | None


# Frequent statements get their calls as one JSON array. PostgreSQL reads arrays of columns twice as fast, but JSON is
# written ten times as fast here, where the process has less time. Their look-ups are lateral with `limit 1`, so that
# each is one index look-up. For a plain join, PostgreSQL may plan and cache a scan while a table is small; it gets
# slower with every row until the statistics are updated.

REGISTRATIONS_BY_KEY: LiteralString = f"""
    select events.organizer_id, registrations.status, registrations.amount_paid, {RECEIVED_AT}, registrations.reason,
           {PERSON_EMAIL}, {PERSON_NAME}, registrations.log_number
      from json_to_recordset(%(requests)s::json)
               as request (index integer, event_id bigint, public_id text, seen_by bigint)
      left join lateral (select id, organizer_id from events where id = request.event_id limit 1) as events on true
      left join lateral (select * from users where public_id = request.public_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = events.id and user_id = users.id limit 1) as registrations on true
     order by request.index
"""


async def find_registrations(
    reader: Reader, keys: Sequence[tuple[int, str, int | None]]
) -> list[RegistrationMatch | None]:
    """The registration of each (event, person, calling organizer), in the order of the keys; None without an event."""
    key_rows = [RegistrationKey(index, *key) for index, key in enumerate(keys)]
    matches = await reader.tuples(REGISTRATIONS_BY_KEY, {"requests": msgspec.json.encode(key_rows).decode()})
    return [
        None if organizer_id is None else RegistrationMatch(organizer_id, row.event_id, row.public_id, *fields)
        for row, (organizer_id, *fields) in zip(key_rows, matches, strict=True)
    ]


async def update_registration(tx: Tx, event_id: int, public_id: str, status: str, amount_paid: int) -> None:
    """Set the status by hand, or the amount paid. A person put on the waiting list stays there until moved back."""
    await tx.run(
        f"""
        update registrations
           set status = new_value.status, amount_paid = %(amount_paid)s,
               reason = case when registrations.status = new_value.status then reason
                             when new_value.status = 'waitlisted' then 'by_organizer' end
          from users
         cross join (select %(status)s::registration_status as status) as new_value
         cross join {changed_by("organizer")}
         where event_id = %(event_id)s and users.id = registrations.user_id and users.public_id = %(public_id)s
        """,
        {"event_id": event_id, "public_id": public_id, "status": status, "amount_paid": amount_paid},
    )


async def delete_registration(tx: Tx, event_id: int, public_id: str, changer: Changer) -> None:
    await tx.run(
        f"""
        delete from registrations using users cross join {changed_by(changer)}
         where event_id = %(event_id)s and users.id = registrations.user_id and users.public_id = %(public_id)s
        """,
        {"event_id": event_id, "public_id": public_id},
    )


def number_waiting(event_id: LiteralString, after: LiteralString, until: LiteralString) -> LiteralString:
    """SQL for the number of people who wait for a free seat in a part of a waiting list, without those put by hand.

    after, until    the ends of the part, each as `received_at, arrival`
    """
    part: LiteralString = f"""
        select count(*) from registrations
         where event_id = {event_id} and status = 'waitlisted'
           and (received_at, arrival) > ({after}) and (received_at, arrival) <= ({until})"""
    return f"({part}) - ({part} and reason is not null)"


async def delete_old_rejections(tx: Tx, limit: int) -> int:
    """Delete rejections if both the settlement and the event's date are more than 30 days ago."""
    return await tx.value(
        """
        with old_row as (
            select registrations.event_id, registrations.user_id
              from registrations join events on events.id = registrations.event_id
             where registrations.status = 'rejected'
               and greatest(events.datetime, registrations.settled_at) < now() - interval '30 days'
             limit %(limit)s for update of registrations skip locked),
        deleted_registration as (
            delete from registrations using old_row
             where registrations.event_id = old_row.event_id and registrations.user_id = old_row.user_id
         returning 1)
        select count(*) from deleted_registration
        """,
        {"limit": limit},
    )


async def find_registrants(reader: Reader, after: int, limit: int) -> dict[int, bool]:
    """The next accounts after an id, each with True if it is still needed."""
    rows = await reader.tuples(
        """
        select id, role <> 'user' or slug is not null or password_hash is not null
                   or inserted_at > now() - interval '1 day'
                   or coalesce((select true from registrations where user_id = users.id limit 1), false)
                   or coalesce((select true from payments where user_id = users.id limit 1), false)
          from users where id > %(after)s order by id limit %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return dict(rows)


async def delete_registrants(tx: Tx, ids: Sequence[int]) -> int:
    """Delete the accounts that have no registration and no payment. Returns the number deleted."""
    return await tx.value(
        """
        with deleted_account as (
            delete from users
             where id = any(array(select id from users where id = any(%(ids)s) and role = 'user'
                                   order by id for update skip locked))
               and (select true from registrations where user_id = users.id limit 1) is null
               and (select true from payments where user_id = users.id limit 1) is null
         returning 1)
        select count(*) from deleted_account
        """,
        {"ids": list(ids)},
    )
