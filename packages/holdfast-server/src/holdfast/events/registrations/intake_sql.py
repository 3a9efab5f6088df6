"""The statements of intake: the one that checks, stamps and stores a batch, and those that wait for what it locks."""

from typing import LiteralString

from holdfast.events.hand_overs import ORGANIZER
from holdfast.events.users.model import OWNS_EMAIL

# Storing a registration locks its event and its person by the foreign keys, and on a retry also the rejection. Each
# of these statements waits until the rows are free, and keeps them locked until the transaction ends.
LOCK_EVENTS: LiteralString = "select from events where id = any(%(event_ids)s) order by id for key share"
_IS_NAMED: LiteralString = f"(email = any(%(emails)s) and {OWNS_EMAIL} or public_id = any(%(public_ids)s))"
LOCK_PEOPLE: LiteralString = f"select from users where {_IS_NAMED} order by id for key share"
LOCK_REJECTED: LiteralString = f"""
    select from registrations
     where event_id = any(%(event_ids)s) and status = 'rejected'
       and user_id = any(array(select id from users where {_IS_NAMED})) order by event_id, user_id for no key update
"""

_RENEW: LiteralString = """
    -- If two transactions deadlock here, PostgreSQL ends one of them, and it is run again.
    renewed as (
        update registrations
           set status = 'pending', arrival = stamped.arrival, received_at = stamped.received_at,
               amount_paid = stamped.amount_paid, amount_due = stamped.amount_due, name = stamped.name,
               language = stamped.language, notify = stamped.notify, settled_at = null, reason = null,
               log_number = null, nonce = stamped.nonce, logged_as = null, form_digest = stamped.form_digest
          from stamped
         where registrations.event_id = stamped.event_id and registrations.user_id = stamped.user_id
           and stamped.previous_status = 'rejected' and registrations.status = 'rejected'
     returning 1),"""


# In this statement `user_id` is the internal id of a person. Other people see only the `public_id`.
def _accept(*, renews: bool) -> LiteralString:
    """The statement that accepts a batch.

    renews    whether it also accepts people whom it rejected before. To begin that update costs as much as three
              registrations, and few batches need it. Without it nothing is stored if there is such a person in the
              batch, whose code is then `rejected_before`.
    """
    renews_too: LiteralString = "true" if renews else "false"
    stored: LiteralString = "select from inserted union all select from renewed" if renews else "select from inserted"
    return f"""
    -- Many requests name few events. What is the same for all of them is looked up once.
    with event as materialized (
        select id, organizer_id, current_price, takes_entries,
               registered_count >= capacity and waitlisted_count >= waitinglist_capacity as is_full,
               case when not published then 'event_draft'
                    when cancelled_at is not null then 'event_cancelled'
                    when datetime <= now() then 'event_expired'
               end as code
          from events where id = any(%(event_ids)s)),
    unproved_organizer as materialized (
        select id from users where id = any(array(select organizer_id from event)) and proved_at is null),
    checked_request as materialized (
        select request.index, request.event_id, request.email, request.new_public_id, request.amount_paid,
               request.must_pay_online, request.name, request.language, coalesce(request.notify, true) as notify,
               request.form_digest,
               event.organizer_id, event.current_price, event.is_full, person.id as user_id, person.public_id,
               previous.status as previous_status,
               case when event.id is null then 'not_found'
                    when request.tenant_id <> event.organizer_id then 'forbidden'
                    when event.code is not null then event.code
                    when request.public_id is not null and person.id is null then 'no_such_user'
               end as code
          from json_to_recordset(%(requests)s::json)
               as request (index integer, tenant_id bigint, event_id bigint, public_id text, email text,
                           new_public_id text, amount_paid bigint, must_pay_online boolean, name text, language text,
                           notify boolean, form_digest uuid)
          left join event on event.id = request.event_id
          left join lateral (select id, public_id from users where users.email = request.email and {OWNS_EMAIL}
                             union all
                             select id, public_id from users
                              where users.public_id = request.public_id and users.email is not null and {OWNS_EMAIL}
                                -- With an organizer's key a public id finds a person only if it is that of the
                                -- organizer itself, or if the person has registered with the organizer before.
                                and (request.tenant_id is null or users.id = request.tenant_id
                                     or (select true from registrations
                                          where user_id = users.id and {ORGANIZER} = request.tenant_id limit 1))
                             limit 1) as person on true
          left join lateral (select status from registrations
                              where event_id = request.event_id and user_id = person.id
                              limit 1) as previous on true),
    -- The rows that have to be locked to store the registrations, as far as nobody else has locked them.
    candidate as (
        select event_id, user_id, previous_status from checked_request
         where code is null and not is_full and (previous_status is null or previous_status = 'rejected')
           and ({renews_too}
                or not exists (select from checked_request
                                where code is null and not is_full and previous_status = 'rejected'))),
    free_events as materialized (
        select id, organizer_id, published, public_log from events
         where id = any(array(select event_id from candidate))
         order by id for key share skip locked),
    logged_event as materialized (
        select free_events.id from free_events
         cross join lateral (select from logs where event_id = free_events.id and closed_at is null limit 1) as log
         where public_log),
    -- A person whose data was erased since this statement began has no address any more, and is not free: the
    -- registration is tried again, and the address gets a new account.
    free_people as materialized (
        select id from users where id = any(array(select user_id from candidate)) and email is not null
         order by id for key share skip locked),
    free_rejections as materialized (
        select rejection.* from candidate
         cross join lateral (select event_id, user_id from registrations
                              where candidate.previous_status = 'rejected' and event_id = candidate.event_id
                                and user_id = candidate.user_id
                              limit 1 for no key update skip locked) as rejection),
    created as (
        insert into users (public_id, email)
        select distinct on (email) new_public_id, email from checked_request
         where code is null and user_id is null and not is_full
           and event_id in (select id from free_events where published)
         order by email
            on conflict do nothing
     returning id, public_id, email),
    checked as (
        -- The organizer of an event that is handed over just now is the one of the row that is locked. So is whether
        -- it is published, and whether its log goes on.
        select request.index, request.event_id,
               coalesce(free_events.organizer_id, request.organizer_id) as organizer_id,
               coalesce(request.user_id, created.id) as user_id,
               coalesce(request.public_id, created.public_id) as public_id,
               coalesce(request.amount_paid, request.current_price, 0) as amount_paid,
               case when request.must_pay_online then request.current_price end as amount_due,
               request.previous_status, request.name, request.language, request.notify, request.form_digest,
               case when request.code is not null then request.code
                    when request.previous_status <> 'rejected' then null
                    when request.is_full then 'event_full'
                    when not {renews_too} and request.previous_status = 'rejected' then 'rejected_before'
                    when free_events.id is null then 'event_locked'
                    when not free_events.published then 'event_draft'
                    when request.user_id is null
                    then case when created.id is null then 'account_being_created' end
                    when request.user_id not in (select id from free_people)
                         or request.previous_status = 'rejected'
                            and (request.event_id, request.user_id) not in (select * from free_rejections)
                    then 'person_locked'
               end as code
          from checked_request as request
          left join free_events on free_events.id = request.event_id
          left join created on created.email = request.email),
    -- The first call of each person, stamped in order of arrival.
    stamped as materialized (
        select *, nextval('registration_arrivals') as arrival, clock_timestamp() as received_at,
               encode(substr(%(nonces)s::bytea, 16 * index + 1, 16), 'hex')::uuid as nonce
          from (select distinct on (event_id, user_id) event_id, organizer_id, user_id, amount_paid, amount_due, name,
                       language, notify, form_digest, previous_status, index from checked
                 where code is null and (previous_status is null or previous_status = 'rejected')
                 order by event_id, user_id, index) as first
         order by index),
{_RENEW if renews else ""}
    -- Sorted by key, so that two processes that insert the same people cannot deadlock.
    inserted as (
        insert into registrations (event_id, organizer_id, user_id, arrival, received_at, nonce, amount_paid,
                                   amount_due, name, language, notify, form_digest)
        select event_id, organizer_id, user_id, arrival, received_at, nonce, amount_paid,
               amount_due, name, language, notify, form_digest
          from stamped where previous_status is null
         order by event_id, user_id
            on conflict do nothing
     returning 1)
    select code, public_id, organizer_id, code is null and (previous_status is null or previous_status = 'rejected'),
           code is null and notify and organizer_id in (select id from unproved_organizer),
           code is null and event_id in (select id from event where takes_entries),
           -- Nothing is told of any, if another transaction has stored one of them at the same time.
           case when (select count(*) from stamped) = (select count(*) from ({stored}) as stored) then received_at end,
           case when event_id in (select id from logged_event) then nonce::text end
      from checked
      left join (select index, received_at, nonce from stamped) as stamp using (index)
     order by index
"""


ACCEPT = _accept(renews=False)
ACCEPT_AND_RENEW = _accept(renews=True)
