"""Intake: one statement checks a batch of registrations, stamps them with their time of arrival, and stores them.

Accepted means stored with the status `pending`. Settlement gives the places later, in the order stamped here.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.events.resources import Tx
from holdfast.events.users.model import new_public_ids

PATIENCE = "200ms"
"""How long a batch waits for people whom other transactions are storing."""

LOCK = 0x696E74616B65
"""Advisory lock ("intake"): shared while registrations are stamped and stored, exclusive for the cut of settlement."""


class Request(Struct):
    """One person who is to be registered for one event, as the statement reads it.

    tenant_id    the organizer whose key asks; None: an admin's key, or the public form
    email        the address in its canonical form
    pays         whether the person pays the current price, if there is one
    place        which one of the batch it is; `accept` sets it
    fresh_id     the public id of the account, if it is a new one; `accept` sets it
    """

    tenant_id: int | None
    event_id: int
    user_id: str | None = None
    email: str | None = None
    amount_paid: int | None = None
    pays: bool = False
    name: str | None = None
    language: str | None = None
    notify: bool = True
    place: int = 0
    fresh_id: str = ""


class Outcome(NamedTuple):
    """The result of one call.

    problem         the code of its refusal, or which row is locked; or None
    user_id         the public id of the person
    organizer_id    whose event it is
    stored          whether a registration was stored
    """

    problem: str | None
    user_id: str | None
    organizer_id: int | None
    stored: bool


# Storing a registration locks its event and its person, by the foreign keys, and for a new try the rejection.
WAIT_FOR_EVENTS: LiteralString = "select from events where id = any(%(event_ids)s) order by id for key share"
WAIT_FOR_PEOPLE: LiteralString = """
    select from users where email = any(%(emails)s) or public_id = any(%(user_ids)s) order by id for key share
"""
WAIT_FOR_REJECTIONS: LiteralString = """
    select from registrations
     where event_id = any(%(event_ids)s) and status = 'rejected'
       and user_id = any(array(select id from users where email = any(%(emails)s) or public_id = any(%(user_ids)s)))
     order by event_id, user_id for no key update
"""

ACCEPT: LiteralString = """
    with request as materialized (
        select request.*, events.organizer_id, events.current_price, person.id as person_id, person.public_id,
               known.status as known,
               case when events.id is null then 'not_found'
                    when request.tenant_id <> events.organizer_id then 'forbidden'
                    when events.cancelled_at is not null then 'event_cancelled'
                    when events.datetime <= now() then 'event_expired'
                    when request.user_id is not null and person.id is null then 'no_such_user'
               end as problem,
               events.registered_count >= events.capacity
                   and events.waitlisted_count >= events.waitinglist_capacity as is_full
          from json_to_recordset(%(requests)s::json)
               as request (place integer, tenant_id bigint, event_id bigint, user_id text, email text, fresh_id text,
                         amount_paid bigint, pays boolean, name text, language text, notify boolean)
          left join lateral (select * from events where id = request.event_id limit 1) as events on true
          left join lateral (select id, public_id from users where users.email = request.email
                             union all
                             select id, public_id from users
                              where users.public_id = request.user_id and users.email is not null
                                -- A handle names nobody, unless the person is known to the organizer already.
                                and (request.tenant_id is null or users.id = request.tenant_id
                                     or (select true from registrations
                                          where user_id = users.id and organizer_id = request.tenant_id limit 1))
                             limit 1) as person on true
          left join lateral (select status from registrations
                              where event_id = request.event_id and user_id = person.id
                              limit 1) as known on true),
    -- The rows that have to be locked to store the registrations, as far as nobody else has locked them.
    wanted as (
        select event_id, person_id, known from request
         where problem is null and not is_full and (known is null or known = 'rejected')),
    free_events as materialized (
        select id, organizer_id from events where id = any(array(select event_id from wanted))
         order by id for key share skip locked),
    -- Whose data was erased a moment ago is not free: the address is that of nobody, and gets a new account.
    free_people as materialized (
        select id from users where id = any(array(select person_id from wanted)) and email is not null
         order by id for key share skip locked),
    free_rejections as materialized (
        select rejection.* from wanted
         cross join lateral (select event_id, user_id from registrations
                              where known = 'rejected' and event_id = wanted.event_id and user_id = wanted.person_id
                              limit 1 for no key update skip locked) as rejection),
    created as (
        insert into users (public_id, email)
        select distinct on (email) fresh_id, email from request
         where problem is null and person_id is null and not is_full and event_id in (select id from free_events)
         order by email
            on conflict do nothing
     returning id, public_id, email),
    checked as (
        -- The organizer of an event that is handed over just now is the one of the row that is locked.
        select request.place, request.event_id,
               coalesce(free_events.organizer_id, request.organizer_id) as organizer_id,
               coalesce(request.person_id, created.id) as user_id,
               coalesce(request.public_id, created.public_id) as public_id,
               coalesce(request.amount_paid, request.current_price, 0) as amount_paid,
               case when request.pays then request.current_price end as amount_due, request.known,
               request.name, request.language, request.notify,
               case when request.problem is not null then request.problem
                    when known <> 'rejected' then null
                    when is_full then 'event_full'
                    when free_events.id is null then 'event_locked'
                    when person_id is null
                    then case when created.id is null then 'account_in_the_making' end
                    when person_id not in (select id from free_people)
                         or known = 'rejected' and (event_id, person_id) not in (select * from free_rejections)
                    then 'person_locked'
               end as problem
          from request
          left join free_events on free_events.id = request.event_id
          left join created on created.email = request.email),
    -- The first call of each person, stamped in order of arrival.
    stamped as materialized (
        select *, nextval('registration_arrivals') as arrival, clock_timestamp() as received_at
          from (select distinct on (event_id, user_id) event_id, organizer_id, user_id, amount_paid, amount_due, name,
                       language, notify, known, place from checked
                 where problem is null and (known is null or known = 'rejected')
                 order by event_id, user_id, place) as first
         order by place),
    -- If two transactions deadlock here, PostgreSQL ends one of them, and it is run again.
    renewed as (
        update registrations
           set status = 'pending', arrival = stamped.arrival, received_at = stamped.received_at,
               amount_paid = stamped.amount_paid, amount_due = stamped.amount_due, name = stamped.name,
               language = stamped.language, notify = stamped.notify, settled_at = null, reason = null
          from stamped
         where registrations.event_id = stamped.event_id and registrations.user_id = stamped.user_id
           and stamped.known = 'rejected' and registrations.status = 'rejected'),
    -- Sorted by key, so that two processes that insert the same people cannot deadlock.
    inserted as (
        insert into registrations (event_id, organizer_id, user_id, arrival, received_at, amount_paid, amount_due, name,
                                   language, notify)
        select event_id, organizer_id, user_id, arrival, received_at, amount_paid, amount_due, name, language, notify
          from stamped
         where known is null
         order by event_id, user_id
            on conflict do nothing)
    select problem, public_id, organizer_id, problem is null and (known is null or known = 'rejected')
      from checked order by place
"""


async def accept(tx: Tx, requests: Sequence[Request], *, waits: bool = True) -> list[Outcome]:
    """Store the registrations that may be accepted as pending, in the order given.

    waits    whether to wait for events and people that others have locked
    """
    for place, (request, fresh_id) in enumerate(zip(requests, new_public_ids(len(requests)), strict=True)):
        request.place, request.fresh_id = place, fresh_id
    if waits:
        # Before the intake lock: whoever waits while it has that lock holds up the settlement of all events.
        await _wait(tx, requests)
    # The lock is taken by a statement of its own: everything stamped under it is committed before the next cut. What
    # may still have to be waited for is a person whom another transaction is storing right now.
    await tx.run(
        "select pg_advisory_xact_lock_shared(%(lock)s), set_config('lock_timeout', %(patience)s, true)",
        {"lock": LOCK, "patience": PATIENCE},
    )
    outcomes = await _store(tx, requests)
    # Another transaction was creating the same account at the same time. It exists now, so these are tried again.
    again = [place for place, each in enumerate(outcomes) if each.problem == "account_in_the_making"]
    if again:
        for place, outcome in zip(again, await _store(tx, [requests[each] for each in again]), strict=True):
            outcomes[place] = outcome
    if not any(each.stored for each in outcomes) and any(each.problem is None for each in outcomes):
        # Somebody is told that the registration is stored, as another transaction has done.
        await tx.confirm()
    return outcomes


async def _wait(tx: Tx, requests: Sequence[Request]) -> None:
    rows = {
        "event_ids": [each.event_id for each in requests],
        "emails": [each.email for each in requests if each.email],
        "user_ids": [each.user_id for each in requests if each.user_id],
    }
    for statement in (WAIT_FOR_EVENTS, WAIT_FOR_PEOPLE, WAIT_FOR_REJECTIONS):
        await tx.run(statement, rows)


async def _store(tx: Tx, requests: Sequence[Request]) -> list[Outcome]:
    given = {"requests": msgspec.json.encode(requests).decode()}
    return [Outcome(*row) for row in await tx.tuples(ACCEPT, given)]
