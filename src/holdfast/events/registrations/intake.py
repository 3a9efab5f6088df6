"""Intake: the registrations of everyone who waits are checked, stamped and stored by one statement.

Accepted means stored as pending. Who gets a place is decided by settlement, in the order stamped here.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

from msgspec import Struct

from holdfast.events.registrations.model import AcceptRegistration
from holdfast.events.registrations.sql import as_json
from holdfast.events.settings import Tx
from holdfast.events.users.model import canonical, new_public_ids
from holdfast.kit.operation import Call

LOCK = 0x696E74616B65
"""Advisory lock ("intake"): shared while registrations are stamped and stored, exclusive for the cut of settlement."""


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
    -- Should two processes wait for each other here, one of them is run again.
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
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": LOCK})
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
