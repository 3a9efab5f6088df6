"""The SQL that accepts a batch of registrations: one statement, put together of its parts.

A part is one query of the `with` clause, under the name of what it gives. In it `user_id` is the internal id of a
person; other people see only the `public_id`.
"""

from typing import LiteralString

from holdfast.events.hand_over_conditions import ORGANIZER
from holdfast.events.users.model import OWNS_EMAIL

_EVENT: LiteralString = """
    -- Many requests name few events. Each event is looked up once.
    event as materialized (
        select id, organizer_id, current_price, takes_entries, queue_id,
               registered_count >= capacity and waitlisted_count >= waitinglist_capacity as is_full,
               case when not published then 'event_draft'
                    when cancelled_at is not null then 'event_cancelled'
                    when datetime <= now() then 'event_expired'
               end as code
          from events where id = any(%(event_ids)s))"""

_UNPROVED_ORGANIZER: LiteralString = """
    unproved_organizer as materialized (
        select id from users where id = any(array(select organizer_id from event)) and proved_at is null)"""


def _request(name: LiteralString, limit_id: LiteralString = "", limit_column: LiteralString = "") -> LiteralString:
    """The requests, with what is stored of their event and their person, and the code of what refuses them."""
    return f"""
    {name} as materialized (
        select request.index, request.event_id, request.email, request.new_public_id, request.amount_paid,
               request.must_pay_online, request.name, request.language, coalesce(request.notify, true) as notify,
               request.form_digest,
               event.organizer_id, event.current_price, event.is_full, person.id as user_id, person.public_id,
               previous.status as previous_status,
               case when event.id is null then 'not_found'
                    when request.tenant_id <> event.organizer_id then 'forbidden'
                    when event.code is not null then event.code
                    when request.public_id is not null and person.id is null then 'no_such_user'
                    -- Null, and so not refused: there is no waiting room, or the organizer itself asks.
                    when request.released_from <> event.queue_id and not is_full
                         and (previous.status is null or previous.status = 'rejected') then 'queue_required'
               end as code{limit_id}
          from json_to_recordset(%(requests)s::json)
               as request (index integer, tenant_id bigint, event_id bigint, public_id text, email text,
                           new_public_id text, amount_paid bigint, must_pay_online boolean, name text, language text,
                           notify boolean, form_digest uuid, released_from bigint{limit_column})
          left join event on event.id = request.event_id
          left join lateral (select id, public_id from users where users.email = request.email and {OWNS_EMAIL}
                             union all
                             select id, public_id from users
                              where users.public_id = request.public_id and users.email is not null and {OWNS_EMAIL}
                                -- If the caller has an organizer's key, a public id finds a person only if it is that
                                -- of the organizer itself, or if the person has registered with the organizer before.
                                and (request.tenant_id is null or users.id = request.tenant_id
                                     or (select true from registrations
                                          where user_id = users.id and {ORGANIZER} = request.tenant_id limit 1))
                             limit 1) as person on true
          left join lateral (select status from registrations
                              where event_id = request.event_id and user_id = person.id
                              limit 1) as previous on true)"""


_COUNTED_PERSON: LiteralString = """
    -- The people that the calls of each limit would register: a person who is registered is not counted again.
    counted_person as materialized (
        select limit_id, event_id, coalesce(user_id::text, email) as person, min(index) as index
          from found_request
         where limit_id is not null and code is null and not is_full
           and (previous_status is null or previous_status = 'rejected')
         group by 1, 2, 3)"""

_BEYOND_LIMIT: LiteralString = """
    beyond_limit as materialized (
        select limit_id, event_id, person
          from (select *, row_number() over (partition by limit_id order by index) as place
                  from counted_person) as numbered_person
          join agent_limits on agent_limits.id = limit_id
         where place > allowed - used)"""

_REQUEST_WITHIN_LIMIT: LiteralString = """
    checked_request as materialized (
        select index, event_id, email, new_public_id, amount_paid, must_pay_online, name, language, notify, form_digest,
               organizer_id, current_price, is_full, user_id, public_id, previous_status, limit_id,
               case when code is null and (previous_status is null or previous_status = 'rejected')
                         and (limit_id, event_id, coalesce(user_id::text, email)) in (select * from beyond_limit)
                    then 'limit_reached' else code end as code
          from found_request)"""


def _candidate(renews: LiteralString) -> LiteralString:
    return f"""
    -- The rows that have to be locked to store the registrations, as far as no other transaction has locked them.
    candidate as (
        select event_id, user_id, previous_status from checked_request
         where code is null and not is_full and (previous_status is null or previous_status = 'rejected')
           and ({renews}
                or not exists (select from checked_request
                                where code is null and not is_full and previous_status = 'rejected')))"""


_FREE_EVENTS: LiteralString = """
    free_events as materialized (
        select id, organizer_id, published, public_log from events
         where id = any(array(select event_id from candidate))
         order by id for key share skip locked)"""

_LOGGED_EVENT: LiteralString = """
    logged_event as materialized (
        select free_events.id from free_events
         cross join lateral (select from logs where event_id = free_events.id and closed_at is null limit 1) as log
         where public_log)"""

_FREE_PEOPLE: LiteralString = """
    -- A person whose data was erased since this statement began has no address any more, and is not free: the
    -- registration is tried again, and the address gets a new account.
    free_people as materialized (
        select id from users where id = any(array(select user_id from candidate)) and email is not null
         order by id for key share skip locked)"""

_FREE_REJECTIONS: LiteralString = """
    free_rejections as materialized (
        select rejection.* from candidate
         cross join lateral (select event_id, user_id from registrations
                              where candidate.previous_status = 'rejected' and event_id = candidate.event_id
                                and user_id = candidate.user_id
                              limit 1 for no key update skip locked) as rejection)"""

_NEW_PERSON: LiteralString = """
    new_person as (
        insert into users (public_id, email)
        select distinct on (email) new_public_id, email from checked_request
         where code is null and user_id is null and not is_full
           and event_id in (select id from free_events where published)
         order by email
            on conflict do nothing
     returning id, public_id, email)"""


def _checked_call(limit_id: LiteralString, renews: LiteralString) -> LiteralString:
    return f"""
    checked_call as (
        -- If an event is handed over just now, the locked row has its organizer, whether it is published, and whether
        -- its log goes on.
        select request.index, request.event_id,
               coalesce(free_events.organizer_id, request.organizer_id) as organizer_id,
               coalesce(request.user_id, new_person.id) as user_id,
               coalesce(request.public_id, new_person.public_id) as public_id,
               coalesce(request.amount_paid, request.current_price, 0) as amount_paid,
               case when request.must_pay_online then request.current_price end as amount_due,
               request.previous_status, request.name, request.language, request.notify, request.form_digest,
               case when request.code is not null then request.code
                    when request.previous_status <> 'rejected' then null
                    when request.is_full then 'event_full'
                    when not {renews} and request.previous_status = 'rejected' then 'rejected_before'
                    when free_events.id is null then 'event_locked'
                    when not free_events.published then 'event_draft'
                    when request.user_id is null
                    then case when new_person.id is null then 'account_being_created' end
                    when request.user_id not in (select id from free_people)
                         or request.previous_status = 'rejected'
                            and (request.event_id, request.user_id) not in (select * from free_rejections)
                    then 'person_locked'
               end as code{limit_id}
          from checked_request as request
          left join free_events on free_events.id = request.event_id
          left join new_person on new_person.email = request.email)"""


def _stamped_call(limit_id: LiteralString) -> LiteralString:
    return f"""
    -- The first call of each person, stamped in order of arrival.
    stamped_call as materialized (
        select *, nextval('registration_arrivals') as arrival, clock_timestamp() as received_at,
               encode(substr(%(nonces)s::bytea, 16 * index + 1, 16), 'hex')::uuid as nonce
          from (select distinct on (event_id, user_id) event_id, organizer_id, user_id, amount_paid, amount_due, name,
                       language, notify, form_digest, previous_status, index{limit_id} from checked_call
                 where code is null and (previous_status is null or previous_status = 'rejected')
                 order by event_id, user_id, index) as first_call
         order by index)"""


_RENEWED_REGISTRATION: LiteralString = """
    -- If two transactions deadlock here, PostgreSQL ends one of them, and it is run again.
    renewed_registration as (
        update registrations
           set status = 'pending', arrival = stamped_call.arrival, received_at = stamped_call.received_at,
               amount_paid = stamped_call.amount_paid, amount_due = stamped_call.amount_due, name = stamped_call.name,
               language = stamped_call.language, notify = stamped_call.notify, settled_at = null, reason = null,
               log_number = null, nonce = stamped_call.nonce, logged_as = null, form_digest = stamped_call.form_digest
          from stamped_call
         where registrations.event_id = stamped_call.event_id and registrations.user_id = stamped_call.user_id
           and stamped_call.previous_status = 'rejected' and registrations.status = 'rejected'
     returning registrations.event_id, registrations.user_id)"""

_NEW_REGISTRATION: LiteralString = """
    -- Sorted by key, so that two processes that insert the same people cannot deadlock.
    new_registration as (
        insert into registrations (event_id, organizer_id, user_id, arrival, received_at, nonce, amount_paid,
                                   amount_due, name, language, notify, form_digest)
        select event_id, organizer_id, user_id, arrival, received_at, nonce, amount_paid,
               amount_due, name, language, notify, form_digest
          from stamped_call where previous_status is null
         order by event_id, user_id
            on conflict do nothing
     returning event_id, user_id)"""

_COUNTED_LIMIT: LiteralString = """
    counted_limit as (
        update agent_limits set used = used + number
          from (select limit_id, count(*) as number
                  from stamped_call
                  join (select event_id, user_id from new_registration
                        union all
                        select event_id, user_id from renewed_registration) as stored_row using (event_id, user_id)
                 where limit_id is not null group by limit_id) as stored_people
         where agent_limits.id = limit_id)"""


def _answer(stored_rows: LiteralString) -> LiteralString:
    return f"""
    select code, public_id, organizer_id, code is null and (previous_status is null or previous_status = 'rejected'),
           code is null and notify and organizer_id in (select id from unproved_organizer),
           code is null and event_id in (select id from event where takes_entries),
           received_at, case when event_id in (select id from logged_event) then nonce::text end, arrival
      from checked_call
      -- Nothing is told of any, if another transaction has stored one of them at the same time.
      left join (select index, received_at, nonce, arrival from stamped_call
                  where (select count(*) from stamped_call)
                        = (select count(*) from ({stored_rows}) as stored_row)) as stamp
                using (index)
     order by index"""


_REQUESTS: tuple[LiteralString, ...] = (_request("checked_request"),)
_REQUESTS_WITHIN_LIMITS: tuple[LiteralString, ...] = (
    _request("found_request", ", limit_id", ", limit_id bigint"),
    _COUNTED_PERSON,
    _BEYOND_LIMIT,
    _REQUEST_WITHIN_LIMIT,
)


def _accept(*, renews: bool, limited: bool = False) -> LiteralString:
    """The statement that accepts a batch.

    renews     whether it also accepts people whom it rejected before. To begin that update costs as much as three
               registrations, and few batches need it. Without it nothing is stored if there is such a person in the
               batch, whose code is then `rejected_before`.
    limited    whether it counts what is stored for the daily limits of callers, and stores nothing beyond them. The
               transaction has locked the rows of these limits.
    """
    limit_id: LiteralString = ", limit_id" if limited else ""
    renews_sql: LiteralString = "true" if renews else "false"
    requests = _REQUESTS_WITHIN_LIMITS if limited else _REQUESTS
    locks = (_candidate(renews_sql), _FREE_EVENTS, _LOGGED_EVENT, _FREE_PEOPLE, _FREE_REJECTIONS)
    people = (_NEW_PERSON, _checked_call(limit_id, renews_sql), _stamped_call(limit_id))
    renewals: tuple[LiteralString, ...] = (_RENEWED_REGISTRATION,) if renews else ()
    limits: tuple[LiteralString, ...] = (_COUNTED_LIMIT,) if limited else ()
    parts = (_EVENT, _UNPROVED_ORGANIZER, *requests, *locks, *people, *renewals, _NEW_REGISTRATION, *limits)
    stored_rows: LiteralString = (
        "select from new_registration union all select from renewed_registration"
        if renews
        else "select from new_registration"
    )
    return f"with {','.join(parts)} {_answer(stored_rows)}"


ACCEPT = _accept(renews=False)
ACCEPT_AND_RENEW = _accept(renews=True)
ACCEPT_WITHIN_LIMITS = _accept(renews=True, limited=True)
