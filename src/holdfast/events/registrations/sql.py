"""Statements on registrations."""

from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.events.registrations.model import AcceptRegistration, Found, Registration
from holdfast.events.settings import Tx
from holdfast.events.users.model import canonical, new_public_ids
from holdfast.kit.operation import Call

INTAKE_LOCK = 0x696E74616B65  # "intake": shared while registrations are stamped and stored, exclusive for the cut

RECEIVED_AT: LiteralString = """to_char(registrations.received_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


async def list_registrations(tx: Tx, organizer_id: int | None, offset: int, limit: int) -> list[Registration]:
    """In order of arrival; those of one organizer's events, or with None of all."""
    return await tx.rows(
        Registration,
        f"""
        select registrations.event_id || '-' || users.public_id as id, registrations.status, registrations.event_id,
               registrations.amount_paid, users.public_id as user_id, {RECEIVED_AT} as received_at
          from registrations
          join users on users.id = registrations.user_id
         where registrations.status in ('registered', 'waitlisted')
           and (%(organizer_id)s::bigint is null
                or registrations.event_id in (select id from events where organizer_id = %(organizer_id)s))
         order by registrations.received_at, registrations.arrival offset %(offset)s limit %(limit)s
        """,
        {"organizer_id": organizer_id, "offset": offset, "limit": limit},
    )


# Hot statements take their calls as one JSON array: it is made and read several times faster than arrays of columns.
# Their look-ups are lateral with `limit 1`, so that each stays one step down an index: a plain join may be planned, and
# cached, as a scan while a table is small, and then costs more with every row until statistics catch up.

FIND: LiteralString = f"""
    select events.organizer_id, registrations.status, registrations.amount_paid, {RECEIVED_AT}, registrations.reason
      from json_to_recordset(%(asked)s::json) as asked (place integer, event_id bigint, user_id text)
      left join lateral (select id, organizer_id from events where id = asked.event_id limit 1) as events on true
      left join lateral (select id from users where public_id = asked.user_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = events.id and user_id = users.id limit 1) as registrations on true
     order by asked.place
"""


async def find_registrations(tx: Tx, asked: Sequence[tuple[int, str]]) -> list[Found | None]:
    """What is known of each (event, person), in the order asked; None where there is no such event."""
    rows = [{"place": place, "event_id": event, "user_id": user} for place, (event, user) in enumerate(asked)]
    return [
        None if organizer_id is None else Found(organizer_id, *pair, *known)
        for pair, (organizer_id, *known) in zip(asked, await tx.tuples(FIND, {"asked": as_json(rows)}), strict=True)
    ]


class Asked(Struct):
    """One call of the intake. `fresh_id` becomes the public id of a new account."""

    place: int
    tenant_id: int | None
    event_id: int
    user_id: str | None
    email: str | None
    fresh_id: str
    amount_paid: int | None


class Taken(NamedTuple):
    """What came of one call: what speaks against it, if anything; the person; whether a registration was stored."""

    problem: str | None
    user_id: str | None
    stored: bool


ACCEPT: LiteralString = """
    with asked as (
        select asked.*, events.current_price, person.id as person_id, person.public_id,
               case when events.id is null then 'not_found'
                    when asked.tenant_id <> events.organizer_id then 'forbidden'
                    when events.cancelled_at is not null then 'event_cancelled'
                    when events.datetime <= now() then 'event_expired'
                    when asked.user_id is not null and person.id is null then 'no_such_user'
               end as problem,
               events.registered_count >= events.capacity
                   and events.waitlisted_count >= events.waitinglist_capacity as is_full
          from json_to_recordset(%(asked)s::json)
               as asked (place integer, tenant_id bigint, event_id bigint, user_id text, email text, fresh_id text,
                         amount_paid bigint)
          left join lateral (select * from events where id = asked.event_id limit 1) as events on true
          left join lateral (select id, public_id from users where users.email = asked.email
                             union all
                             select id, public_id from users where users.public_id = asked.user_id
                             limit 1) as person on true),
    created as (
        insert into users (public_id, email)
        select distinct on (email) fresh_id, email from asked
         where problem is null and person_id is null and not is_full
         order by email
            on conflict do nothing
     returning id, public_id, email),
    judged as (
        select asked.place, asked.event_id, coalesce(asked.person_id, created.id) as user_id,
               coalesce(asked.public_id, created.public_id) as public_id,
               coalesce(asked.amount_paid, asked.current_price, 0) as amount_paid, known.status as known,
               case when asked.problem is not null then asked.problem
                    when known.status <> 'rejected' then null
                    when asked.is_full then 'event_full'
                    when asked.person_id is null and created.id is null then 'account_in_the_making'
               end as problem
          from asked
          left join created on created.email = asked.email
          left join lateral (select status from registrations
                              where event_id = asked.event_id and user_id = asked.person_id limit 1) as known on true),
    -- The first call of each person, stamped in order of arrival.
    stamped as materialized (
        select *, nextval('registration_arrivals') as arrival, clock_timestamp() as received_at
          from (select distinct on (event_id, user_id) event_id, user_id, amount_paid, known, place from judged
                 where problem is null and (known is null or known = 'rejected')
                 order by event_id, user_id, place) as first
         order by place),
    asked_again as (
        update registrations
           set status = 'pending', arrival = stamped.arrival, received_at = stamped.received_at,
               amount_paid = stamped.amount_paid, settled_at = null, reason = null
          from stamped
         where registrations.event_id = stamped.event_id and registrations.user_id = stamped.user_id
           and stamped.known = 'rejected' and registrations.status = 'rejected'),
    -- Sorted by key, so that two processes that insert the same people cannot wait for each other in a circle.
    inserted as (
        insert into registrations (event_id, user_id, arrival, received_at, amount_paid)
        select event_id, user_id, arrival, received_at, amount_paid from stamped
         where known is null
         order by event_id, user_id
            on conflict do nothing)
    select problem, public_id, problem is null and (known is null or known = 'rejected') from judged order by place
"""


async def accept(tx: Tx, calls: Sequence[Call[AcceptRegistration]]) -> list[Taken]:
    """Store the registrations that may be accepted as pending, in the order of the calls."""
    fresh_ids = new_public_ids(len(calls))
    asked = [_asked(place, call, fresh_id) for place, (call, fresh_id) in enumerate(zip(calls, fresh_ids, strict=True))]
    # The lock comes first, in a statement of its own: whatever is stamped under it is stored before the next cut.
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": INTAKE_LOCK})
    taken = [Taken(*row) for row in await tx.tuples(ACCEPT, {"asked": as_json(asked)})]
    # Somebody else was creating the same account at the same moment: by now it is there.
    again = [place for place, each in enumerate(taken) if each.problem == "account_in_the_making"]
    if again:
        for place, row in zip(
            again, await tx.tuples(ACCEPT, {"asked": as_json([asked[i] for i in again])}), strict=True
        ):
            taken[place] = Taken(*row)
    return taken


def _asked(place: int, call: Call[AcceptRegistration], fresh_id: str) -> Asked:
    command = call.command
    email = canonical(command.email) if command.email else None
    return Asked(place, call.caller.tenant_id, command.event_id, command.user_id, email, fresh_id, command.amount_paid)


def as_json(rows: Sequence[Any]) -> str:
    return msgspec.json.encode(rows).decode()


async def lock_event_of(tx: Tx, event_id: int) -> None:
    """Keep everyone else from settling or freeing seats of the event until the transaction ends."""
    await tx.run("select from events where id = %(id)s for no key update", {"id": event_id})


async def has_free_seat(tx: Tx, event_id: int) -> bool:
    return bool(await tx.value("select registered_count < capacity from events where id = %(id)s", {"id": event_id}))


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


async def promote(tx: Tx, event_id: int, but_not: str | None) -> None:
    """Give the free seats of an active event to the first on its waiting list."""
    await tx.run(
        """
        with first_waiting as (
            select event_id, user_id from registrations
             where event_id = %(event_id)s and status = 'waitlisted'
               and user_id is distinct from (select id from users where public_id = %(but_not)s)
             order by received_at, arrival
             limit (select case when cancelled_at is null and datetime > now()
                                then capacity - registered_count else 0 end
                      from events where id = %(event_id)s))
        update registrations set status = 'registered'
          from first_waiting
         where registrations.event_id = first_waiting.event_id and registrations.user_id = first_waiting.user_id
        """,
        {"event_id": event_id, "but_not": but_not},
    )


async def cut(tx: Tx) -> str | None:
    """The moment up to which every accepted registration is stored; None when none waits to be settled.

    The exclusive lock waits for accepting transactions under way; those that come later are stamped after the cut.
    """
    if not await tx.value("select exists (select from registrations where status = 'pending')"):
        return None
    return await tx.value(
        """
        with locked as materialized (select pg_advisory_xact_lock(%(lock)s))
        select clock_timestamp()::text from locked
        """,
        {"lock": INTAKE_LOCK},
    )


async def lock_events_to_settle(tx: Tx, cut: str, limit: int) -> list[int]:
    """The events of the oldest registrations to settle, locked in the order of their ids so that nobody deadlocks."""
    rows = await tx.tuples(
        """
        select id from events
         where id in (select event_id from (select event_id from registrations
                                             where status = 'pending' and received_at <= %(cut)s::timestamptz
                                             order by received_at, arrival limit %(limit)s) as oldest)
         order by id for no key update
        """,
        {"cut": cut, "limit": limit},
    )
    return [id for (id,) in rows]


async def settle(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> dict[str, int]:
    """Settle the oldest registrations of locked events: seats, then the waiting list, then no place.

    How many got each outcome.
    """
    rows = await tx.tuples(
        """
        with oldest as (
            select event_id, user_id,
                   row_number() over (partition by event_id order by received_at, arrival) as place
              from (select event_id, user_id, received_at, arrival from registrations
                     where status = 'pending' and received_at <= %(cut)s::timestamptz
                       and event_id = any(%(event_ids)s)
                     order by received_at, arrival limit %(limit)s) as batch),
        outcome as (
            select oldest.event_id, oldest.user_id,
                   (case when cancelled_at is not null then 'rejected'
                         when place <= seats then 'registered'
                         when place <= seats + waiting_places then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when cancelled_at is not null then 'event_cancelled'
                        when place > seats + waiting_places then 'event_full' end as reason
              from oldest
              join events on events.id = oldest.event_id
             cross join lateral (
                select capacity - registered_count as seats,
                       greatest(waitinglist_capacity - waitlisted_count, 0) as waiting_places) as room),
        settled as (
            update registrations
               set status = outcome.status, reason = outcome.reason, settled_at = now()
              from outcome
             where registrations.event_id = outcome.event_id and registrations.user_id = outcome.user_id
         returning registrations.status)
        select status, count(*) from settled group by status
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit},
    )
    return dict(rows)


async def delete_old_rejections(tx: Tx) -> int:
    """Delete rejections settled, and of events held, more than 30 days ago."""
    return await tx.value(
        """
        with deleted as (
            delete from registrations using events
             where events.id = registrations.event_id and registrations.status = 'rejected'
               and greatest(events.datetime, registrations.settled_at) < now() - interval '30 days'
         returning 1)
        select count(*) from deleted
        """
    )
