"""Intake: one statement checks a batch of registrations, stamps them with their time of arrival, and stores them.

An accepted registration is stored with the status `pending`. Settlement assigns the seats and the positions on the
waiting list later, in the stamped order, up to a cut: a time up to which every accepted registration is committed. The
file also has the statements that wait for what the intake locks, and that read when stored registrations arrived.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Struct
from psycopg.errors import LockNotAvailable

from holdfast.events.hand_overs import ORGANIZER
from holdfast.events.log.model import new_nonces
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import OWNS_EMAIL, new_public_ids


class Stamp(NamedTuple):
    """The stamp of a registration; all None if there is none.

    nonce        the nonce of its commitment; None: no log has it, or will have it
    logged_as    the public id in its commitment; None: the present one of the person
    is_cancelling   whether it is being given up
    """

    received_at: dt.datetime | None
    nonce: str | None
    logged_as: str | None
    is_cancelling: bool


LOGGED_NONCE: LiteralString = """
    case when log_number is not null
              or status = 'pending'
                 and exists (select from logs where logs.event_id = registrations.event_id and closed_at is null)
         then nonce::text end
"""
"""SQL: the nonce of a row of `registrations`, if a log has the registration, or will have it."""

LOGGED_AT: LiteralString = """
    coalesce((select entered_at from event_entries
               where event_entries.event_id = registrations.event_id and ticket = log_number limit 1), received_at)
"""
"""SQL: when a row of `registrations` came, as a log says it: a draw gives it another `received_at`."""

FIND: LiteralString = f"""
    select {LOGGED_AT}, {LOGGED_NONCE}, logged_as, gives_up_at is not null
      from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
      left join lateral (select id from users where users.public_id = person.public_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = person.event_id and user_id = users.id limit 1) as registrations on true
     order by index
"""


async def find_stamps(tx: Tx, people: Sequence[tuple[int, str | None]], commits: bool) -> list[Stamp]:
    """The stamps of the registrations of (event, public id of a person), in the order of `people`.

    commits    whether the transaction is committed with it
    """
    find = tx.tuples_and_commit if commits else tx.tuples
    return [Stamp(*stamp) for stamp in await find(FIND, _named(people))]


UNDO_CANCELLATIONS: LiteralString = """
    with cancelling as materialized (
        select index, mine.event_id, mine.user_id
          from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
         cross join lateral (select id from users where users.public_id = person.public_id limit 1) as users
         cross join lateral (select event_id, user_id from registrations
                              where event_id = person.event_id and user_id = users.id
                              limit 1 for no key update skip locked) as mine),
    undone as (
        update registrations set gives_up_at = null from cancelling
         where registrations.event_id = cancelling.event_id and registrations.user_id = cancelling.user_id)
    select index from cancelling
"""


async def undo_cancellations(tx: Tx, people: Sequence[tuple[int, str | None]]) -> set[int]:
    """Undo that registrations of (event, public id of a person) are given up. Returns the indexes of those kept.

    The others are gone, or another transaction has locked them.
    """
    return {index for (index,) in await tx.tuples(UNDO_CANCELLATIONS, _named(people))}


def _named(people: Sequence[tuple[int, str | None]]) -> dict[str, str]:
    rows = [
        {"index": index, "event_id": event_id, "public_id": public_id}
        for index, (event_id, public_id) in enumerate(people)
    ]
    return {"people": msgspec.json.encode(rows).decode()}


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

# What the statement has more if a caller has a daily limit. The transaction has locked the rows of these limits.
_KEEP_LIMITS: LiteralString = """
    -- The people that the calls of each limit would register: a person who is registered is not counted again.
    counted_person as materialized (
        select limit_id, event_id, coalesce(user_id::text, email) as person, min(index) as index
          from found_request
         where limit_id is not null and code is null and not is_full
           and (previous_status is null or previous_status = 'rejected')
         group by 1, 2, 3),
    beyond_limit as materialized (
        select limit_id, event_id, person
          from (select *, row_number() over (partition by limit_id order by index) as place
                  from counted_person) as placed
          join agent_limits on agent_limits.id = limit_id
         where place > allowed - used),
    checked_request as materialized (
        select index, event_id, email, new_public_id, amount_paid, must_pay_online, name, language, notify, form_digest,
               organizer_id, current_price, is_full, user_id, public_id, previous_status, limit_id,
               case when code is null and (previous_status is null or previous_status = 'rejected')
                         and (limit_id, event_id, coalesce(user_id::text, email)) in (select * from beyond_limit)
                    then 'limit_reached' else code end as code
          from found_request),"""

_COUNT: LiteralString = """
    counted as (
        update agent_limits set used = used + number
          from (select limit_id, count(*) as number
                  from stamped join ({stored}) as stored using (event_id, user_id)
                 where limit_id is not null group by limit_id) as made
         where agent_limits.id = limit_id)"""

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
     returning registrations.event_id, registrations.user_id),"""


# In this statement `user_id` is the internal id of a person. Other people see only the `public_id`.
def _accept(*, renews: bool, limited: bool = False) -> LiteralString:
    """The statement that accepts a batch.

    renews    whether it also accepts people whom it rejected before. To begin that update costs as much as three
              registrations, and few batches need it. Without it nothing is stored if there is such a person in the
              batch, whose code is then `rejected_before`.
    limited    whether it counts what is stored for the daily limits of callers, and stores nothing beyond them
    """
    renews_too: LiteralString = "true" if renews else "false"
    stored: LiteralString = "select from inserted union all select from renewed" if renews else "select from inserted"
    stored_rows: LiteralString = stored.replace("select from", "select event_id, user_id from")
    limit_id: LiteralString = ", limit_id" if limited else ""
    return f"""
    -- Many requests name few events. What is the same for all of them is looked up once.
    with event as materialized (
        select id, organizer_id, current_price, takes_entries, queue_id,
               registered_count >= capacity and waitlisted_count >= waitinglist_capacity as is_full,
               case when not published then 'event_draft'
                    when cancelled_at is not null then 'event_cancelled'
                    when datetime <= now() then 'event_expired'
               end as code
          from events where id = any(%(event_ids)s)),
    unproved_organizer as materialized (
        select id from users where id = any(array(select organizer_id from event)) and proved_at is null),
    {"found_request" if limited else "checked_request"} as materialized (
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
                           notify boolean, form_digest uuid, released_from bigint
                           {", limit_id bigint" if limited else ""})
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
{_KEEP_LIMITS if limited else ""}
    -- The rows that have to be locked to store the registrations, as far as no other transaction has locked them.
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
               end as code{limit_id}
          from checked_request as request
          left join free_events on free_events.id = request.event_id
          left join created on created.email = request.email),
    -- The first call of each person, stamped in order of arrival.
    stamped as materialized (
        select *, nextval('registration_arrivals') as arrival, clock_timestamp() as received_at,
               encode(substr(%(nonces)s::bytea, 16 * index + 1, 16), 'hex')::uuid as nonce
          from (select distinct on (event_id, user_id) event_id, organizer_id, user_id, amount_paid, amount_due, name,
                       language, notify, form_digest, previous_status, index{limit_id} from checked
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
     returning event_id, user_id){"," + _COUNT.replace("{stored}", stored_rows) if limited else ""}
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
ACCEPT_WITHIN_LIMITS = _accept(renews=True, limited=True)


LOCK_TIMEOUT = "200ms"
"""The longest time a batch waits for people whom other transactions are storing."""

OVERTAKEN = ("account_being_created", "removed")
"""The codes of requests that are stored again at once, since another transaction has overtaken them: it created the
account (or an account with the same random public id), or it removed the registration that there was."""

MAX_ATTEMPTS = 5
"""The highest number of times that a request is stored, if others overtake it each time."""

ADVISORY_LOCK_ID = 0x696E74616B65
"""Advisory lock ("intake"): shared while registrations are stamped and stored, exclusive while settlement reads the
clock."""


class IntakeRequest(Struct, omit_defaults=True):
    """A request to register one person for one event, as the statement reads it: most members have their defaults.

    tenant_id         the organizer of the caller's key; None: an admin's key, or the public form
    public_id         the public id of the person; None: the person is named by `email`
    email             the address in its canonical form
    amount_paid       the amount that was paid elsewhere; None: the current price of the event, or 0 if it has none
    must_pay_online   whether the person has to pay the current price, if there is one
    form_digest       the digest of the secret of the form that asks for it; None: no form does
    released_from     the id of the waiting room that has released the visitor who asks; 0: none has; None: the
                      organizer itself asks, and needs no release
    limit_id          the id of the daily limit of the caller, whose row the transaction has locked; None: it has none
    index             its index in the batch; `accept` sets it
    new_public_id     the public id of the account if a new one is created; each attempt has another
    """

    tenant_id: int | None
    event_id: int
    public_id: str | None = None
    email: str | None = None
    amount_paid: int | None = None
    must_pay_online: bool = False
    name: str | None = None
    language: str | None = None
    notify: bool = True
    form_digest: str | None = None
    released_from: int | None = None
    limit_id: int | None = None
    index: int = -1
    new_public_id: str = ""


class IntakeResult(NamedTuple):
    """The result of one call.

    code            the code of the refusal, or of the row that is locked; None: accepted
    public_id       the public id of the person
    organizer_id    the organizer of the event
    stored          whether a registration was stored
    mails_wait      whether its mails wait until the organizer proves its address
    is_drawn        whether its place is drawn
    received_at     the time of arrival of the registration that is stored, also if it existed before; None: refused
    nonce           the nonce of its commitment; None: refused, or no log has it, or will have it
    logged_as       the public id in its commitment; None: `public_id`
    """

    code: str | None
    public_id: str | None
    organizer_id: int | None
    stored: bool
    mails_wait: bool
    is_drawn: bool
    received_at: dt.datetime | None
    nonce: str | None
    logged_as: str | None = None


async def accept(
    tx: Tx, requests: Sequence[IntakeRequest], *, waits: bool = True, commits: bool = False
) -> list[IntakeResult]:
    """Store the acceptable registrations as pending, in the order of the requests.

    waits      whether to wait for events and people that others have locked
    commits    whether the transaction may be committed with what is stored: the caller reads and writes nothing else
    """
    for index, request in enumerate(requests):
        request.index = index
    if waits:
        # Before the intake lock: a transaction that waits while it has that lock delays the settlement of all events.
        await _lock(tx, requests)
    results = await _store(tx, requests, commits)
    await _add_stamps(tx, requests, results, commits)
    for _ in range(MAX_ATTEMPTS - 1):
        again = [index for index, result in enumerate(results) if result.code in OVERTAKEN]
        if not again:
            break
        for index, result in zip(again, await _store(tx, [requests[index] for index in again], commits), strict=True):
            results[index] = result
        await _add_stamps(tx, requests, results, commits)
    return results


async def _add_stamps(tx: Tx, requests: Sequence[IntakeRequest], results: list[IntakeResult], commits: bool) -> None:
    """Add their stamps to the results of registrations that existed before. One that has none was removed.

    A person who registers again keeps a registration that is being given up.
    """
    earlier = [index for index, result in enumerate(results) if result.code is None and result.received_at is None]
    if not earlier:
        return
    if not any(result.stored for result in results):
        # A caller is told that the registration is stored, which another transaction has done.
        await tx.confirm()
    people = [(requests[index].event_id, results[index].public_id) for index in earlier]
    stamps = await find_stamps(tx, people, commits)
    cancelling = [place for place, stamp in enumerate(stamps) if stamp.is_cancelling]
    still_there = await undo_cancellations(tx, [people[place] for place in cancelling]) if cancelling else set[int]()
    gone = {place for number, place in enumerate(cancelling) if number not in still_there}
    for place, (index, stamp) in enumerate(zip(earlier, stamps, strict=True)):
        code = "removed" if stamp.received_at is None or place in gone else None
        results[index] = results[index]._replace(
            code=code, received_at=stamp.received_at, nonce=stamp.nonce, logged_as=stamp.logged_as
        )


async def _lock(tx: Tx, requests: Sequence[IntakeRequest]) -> None:
    rows = {
        "event_ids": [request.event_id for request in requests],
        "emails": [request.email for request in requests if request.email],
        "public_ids": [request.public_id for request in requests if request.public_id],
    }
    for statement in (LOCK_EVENTS, LOCK_PEOPLE, LOCK_REJECTED):
        await tx.run(statement, rows)


async def _store(tx: Tx, requests: Sequence[IntakeRequest], commits: bool) -> list[IntakeResult]:
    for request, new_public_id in zip(requests, new_public_ids(len(requests)), strict=True):
        request.new_public_id = new_public_id
    # Those that are tried again keep their indexes.
    nonces = new_nonces(1 + max(request.index for request in requests))
    parameters = {
        "requests": msgspec.json.encode(requests).decode(),
        "event_ids": list({request.event_id for request in requests}),
        "nonces": nonces,
    }
    if any(request.limit_id for request in requests):
        return await _run(tx, ACCEPT_WITHIN_LIMITS, parameters, commits)
    results = await _run(tx, ACCEPT, parameters, commits)
    if any(result.code == "rejected_before" for result in results):
        results = await _run(tx, ACCEPT_AND_RENEW, parameters, commits)
    return results


async def _run(tx: Tx, statement: LiteralString, parameters: Mapping[str, Any], commits: bool) -> list[IntakeResult]:
    # A separate statement takes the lock, so that every registration that is stamped under it is committed before
    # settlement reads the clock the next time. Later the transaction may still wait for a person whom another
    # transaction is storing right now.
    await tx.run(
        "select pg_advisory_xact_lock_shared(%(lock)s), set_config('lock_timeout', %(lock_timeout)s, true)",
        {"lock": ADVISORY_LOCK_ID, "lock_timeout": LOCK_TIMEOUT},
    )
    rows = await (tx.tuples_and_commit if commits else tx.tuples)(statement, parameters)
    return [IntakeResult(*row) for row in rows]


async def wait_for_cut(reader: Reader, lock_timeout: float) -> str | None:
    """The time when the running accepting transactions have ended. None if that takes longer than `lock_timeout`.

    The exclusive lock waits for them; later ones wait for it, and get a later time.
    """
    try:
        return await reader.value(
            """
            with limited as materialized (select set_config('lock_timeout', %(lock_timeout)s, true)),
                 locked as materialized (select pg_advisory_xact_lock(%(lock)s) from limited)
            select clock_timestamp()::text from locked
            """,
            {"lock": ADVISORY_LOCK_ID, "lock_timeout": f"{round(lock_timeout * 1000)}ms"},
        )
    except LockNotAvailable:
        return None
