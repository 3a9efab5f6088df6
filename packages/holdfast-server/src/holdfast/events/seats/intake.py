"""Intake: one statement checks a batch of registrations, stamps them with their time of arrival, and stores them.

An accepted registration is stored with the status `pending`. Settlement assigns the seats and the places on the
waiting list later, in the stamped order, up to a cut: a time up to which every accepted registration is committed. The
file also has the statements that wait for what the intake locks, and that read when stored registrations arrived.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Struct
from psycopg.errors import LockNotAvailable

from holdfast.events.log.model import new_nonces
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.intake_statement import ACCEPT, ACCEPT_AND_RENEW, ACCEPT_WITHIN_LIMITS
from holdfast.events.users.model import OWNS_EMAIL, new_public_ids

LOCK_TIMEOUT = "200ms"
"""The longest time a batch waits for people whom other transactions are storing."""

OVERTAKEN_CODES = ("account_being_created", "removed")
"""The codes of requests that are stored again at once, since another transaction has overtaken them: it created the
account (or an account with the same random public id), or it removed the registration that there was."""

MAX_ATTEMPTS = 5
"""The highest number of times that a request is stored, if others overtake it each time."""

ADVISORY_LOCK_ID = 0x696E74616B65
"""Advisory lock ("intake"): shared while registrations are stamped and stored, exclusive while settlement reads the
clock."""


class Stamp(NamedTuple):
    """The stamp of a registration; if there is none, all but `is_cancelling` are None.

    nonce            the nonce of its commitment; None: no log has it, or will have it
    logged_as        the public id in its commitment; None: the present one of the person
    is_cancelling    whether its cancellation waits
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

STAMPS: LiteralString = f"""
    select {LOGGED_AT}, {LOGGED_NONCE}, logged_as, cancels_at is not null
      from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
      left join lateral (select id from users where users.public_id = person.public_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = person.event_id and user_id = users.id limit 1) as registrations on true
     order by index
"""


async def find_stamps(tx: Tx, people: Sequence[tuple[int, str | None]], can_commit_early: bool) -> list[Stamp]:
    """One stamp for each pair of event and public id of a person, in their order.

    can_commit_early    whether the transaction may be committed with this statement
    """
    find = tx.tuples_and_commit if can_commit_early else tx.tuples
    return [Stamp(*stamp) for stamp in await find(STAMPS, _people_parameters(people))]


UNDO_CANCELLATIONS: LiteralString = """
    with cancelling_registration as materialized (
        select index, registration.event_id, registration.user_id
          from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
         cross join lateral (select id from users where users.public_id = person.public_id limit 1) as users
         cross join lateral (select event_id, user_id from registrations
                              where event_id = person.event_id and user_id = users.id
                              limit 1 for no key update skip locked) as registration),
    kept_registration as (
        update registrations set cancels_at = null from cancelling_registration
         where registrations.event_id = cancelling_registration.event_id
           and registrations.user_id = cancelling_registration.user_id)
    select index from cancelling_registration
"""


async def undo_cancellations(tx: Tx, people: Sequence[tuple[int, str | None]]) -> list[bool]:
    """Undo the cancellations of registrations by (event, public id of a person). Returns whether each was undone.

    The others are gone, or another transaction has locked them.
    """
    if not people:
        return []
    undone_indexes = {index for (index,) in await tx.tuples(UNDO_CANCELLATIONS, _people_parameters(people))}
    return [index in undone_indexes for index in range(len(people))]


def _people_parameters(people: Sequence[tuple[int, str | None]]) -> dict[str, str]:
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
    release_token     the release token that came with the request; `event_releases` takes it away when it has read it
    limit_id          the id of the daily limit of the caller, whose row the transaction has locked; None: it has none
    index             its index in the batch; `store_pending` sets it
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
    release_token: str | None = None
    limit_id: int | None = None
    index: int = -1
    new_public_id: str = ""


class IntakeResult(NamedTuple):
    """The result of one call.

    code            the code of the refusal, or of the row that is locked; None: accepted
    public_id       the public id of the person
    organizer_id    the organizer of the event
    is_stored       whether a registration was stored
    mails_wait      whether its mails wait until the organizer proves its address
    is_drawn        whether its place is drawn
    received_at     the time of arrival of the registration that is stored, also if it existed before; None: refused
    nonce           the nonce of its commitment; None: refused, or no log has it, or will have it
    arrival         its number of arrival, if this call has stored it; None for a second call that names the same person
    logged_as       the public id in its commitment; None: `public_id`
    """

    code: str | None
    public_id: str | None
    organizer_id: int | None
    is_stored: bool
    mails_wait: bool
    is_drawn: bool
    received_at: dt.datetime | None
    nonce: str | None
    arrival: int | None
    logged_as: str | None = None


async def store_pending(
    tx: Tx, requests: Sequence[IntakeRequest], *, waits: bool = True, can_commit_early: bool = False
) -> list[IntakeResult]:
    """Store the acceptable registrations as pending, in the order of the requests.

    waits               whether to wait for events and people that others have locked
    can_commit_early    whether each statement may commit by itself: what follows is in another transaction
    """
    for index, request in enumerate(requests):
        request.index = index
    if waits:
        # Before the intake lock: a transaction that waits while it has that lock delays the settlement of all events.
        await _lock(tx, requests)
    results = await _store(tx, requests, can_commit_early)
    await _add_stamps(tx, requests, results, can_commit_early)
    for _ in range(MAX_ATTEMPTS - 1):
        overtaken = {index: requests[index] for index, result in enumerate(results) if result.code in OVERTAKEN_CODES}
        if not overtaken:
            break
        new_results = await _store(tx, [*overtaken.values()], can_commit_early)
        for index, result in zip(overtaken, new_results, strict=True):
            results[index] = result
        await _add_stamps(tx, requests, results, can_commit_early)
    return results


async def _add_stamps(
    tx: Tx, requests: Sequence[IntakeRequest], results: list[IntakeResult], can_commit_early: bool
) -> None:
    """Add their stamps to the results of registrations that existed before. One that has none was removed.

    A person who registers again keeps a registration whose cancellation waits.
    """
    people = {
        index: (requests[index].event_id, result.public_id)
        for index, result in enumerate(results)
        if result.code is None and result.received_at is None
    }
    if not people:
        return
    if not any(result.is_stored for result in results):
        # A caller is told that the registration is stored, which another transaction has done.
        await tx.wait_for_earlier_commits()
    stamps = dict(zip(people, await find_stamps(tx, [*people.values()], can_commit_early), strict=True))
    cancelling_indexes = [index for index, stamp in stamps.items() if stamp.is_cancelling]
    are_undone = await undo_cancellations(tx, [people[index] for index in cancelling_indexes])
    lost_indexes = {index for index, is_undone in zip(cancelling_indexes, are_undone, strict=True) if not is_undone}
    for index, stamp in stamps.items():
        is_removed = stamp.received_at is None or index in lost_indexes
        results[index] = results[index]._replace(
            code="removed" if is_removed else None,
            received_at=stamp.received_at,
            nonce=stamp.nonce,
            logged_as=stamp.logged_as,
        )


async def _lock(tx: Tx, requests: Sequence[IntakeRequest]) -> None:
    rows = {
        "event_ids": [request.event_id for request in requests],
        "emails": [request.email for request in requests if request.email],
        "public_ids": [request.public_id for request in requests if request.public_id],
    }
    for statement in (LOCK_EVENTS, LOCK_PEOPLE, LOCK_REJECTED):
        await tx.run(statement, rows)


async def _store(tx: Tx, requests: Sequence[IntakeRequest], can_commit_early: bool) -> list[IntakeResult]:
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
        return await _run(tx, ACCEPT_WITHIN_LIMITS, parameters, can_commit_early)
    results = await _run(tx, ACCEPT, parameters, can_commit_early)
    if any(result.code == "rejected_before" for result in results):
        results = await _run(tx, ACCEPT_AND_RENEW, parameters, can_commit_early)
    return results


async def _run(
    tx: Tx, statement: LiteralString, parameters: Mapping[str, Any], can_commit_early: bool
) -> list[IntakeResult]:
    # A separate statement takes the lock, so that every registration that is stamped under it is committed before
    # settlement reads the clock the next time. Later the transaction may still wait for a person whom another
    # transaction is storing right now.
    await tx.run(
        "select pg_advisory_xact_lock_shared(%(lock)s), set_config('lock_timeout', %(lock_timeout)s, true)",
        {"lock": ADVISORY_LOCK_ID, "lock_timeout": LOCK_TIMEOUT},
    )
    rows = await (tx.tuples_and_commit if can_commit_early else tx.tuples)(statement, parameters)
    return [IntakeResult(*row) for row in rows]


class CutTimeout(Exception):
    """The running accepting transactions have not ended in time."""


async def wait_for_cut(reader: Reader, lock_timeout: float, *, if_pending: bool = False) -> str | None:
    """The time when the running accepting transactions have ended. Raises `CutTimeout` after `lock_timeout` seconds.

    The exclusive lock waits for them; later ones wait for it, and get a later time.

    if_pending    do not wait, and return None, if no registration is pending
    """
    try:
        return await reader.value(
            """
            with lock_timeout as materialized (
                     select set_config('lock_timeout', %(lock_timeout)s, true)
                      where not %(if_pending)s or exists (select from registrations where status = 'pending')),
                 cut_lock as materialized (select pg_advisory_xact_lock(%(lock)s) from lock_timeout)
            select clock_timestamp()::text from cut_lock
            """,
            {
                "lock": ADVISORY_LOCK_ID,
                "lock_timeout": f"{round(lock_timeout * 1000)}ms",
                "if_pending": if_pending,
            },
        )
    except LockNotAvailable as error:
        raise CutTimeout from error
