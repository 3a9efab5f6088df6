"""Intake: one statement checks a batch of registrations, stamps them with their time of arrival, and stores them.

An accepted registration is stored with the status `pending`. Settlement assigns the seats and the positions
on the waiting list later, in the stamped order.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.events.order_log import new_nonces
from holdfast.events.registrations.intake_sql import (
    ACCEPT,
    ACCEPT_AND_RENEW,
    LOCK_EVENTS,
    LOCK_PEOPLE,
    LOCK_REJECTED,
)
from holdfast.events.registrations.stamps import find_stamps
from holdfast.events.resources import Tx
from holdfast.events.users.public_ids import new_public_ids

LOCK_TIMEOUT = "200ms"
"""The longest time a batch waits for people whom other transactions are storing."""

OVERTAKEN = ("account_being_created", "removed")
"""The codes of requests that are stored again at once, since another transaction has overtaken them: it created the
account (or an account with the same random public id), or it removed the registration that there was."""

MAX_ATTEMPTS = 5
"""The highest number of times that a request is stored, if others overtake it each time."""

ADVISORY_LOCK_ID = 0x696E74616B65
"""Advisory lock ("intake"): shared while registrations are stamped and stored, exclusive while settlement reads the
clock (`intake_cut.py`)."""


class IntakeRequest(Struct, omit_defaults=True):
    """A request to register one person for one event, as the statement reads it: most members have their defaults.

    tenant_id         the organizer of the caller's key; None: an admin's key, or the public form
    public_id         the public id of the person; None: the person is named by `email`
    email             the address in its canonical form
    amount_paid       the amount that was paid elsewhere; None: the current price of the event, or 0 if it has none
    must_pay_online   whether the person has to pay the current price, if there is one
    form_digest       the digest of the secret of the form that asks for it; None: no form does
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
    """Add their stamps to the results of registrations that existed before. One that has none was removed."""
    earlier = [index for index, result in enumerate(results) if result.code is None and result.received_at is None]
    if not earlier:
        return
    if not any(result.stored for result in results):
        # A caller is told that the registration is stored, which another transaction has done.
        await tx.confirm()
    people = [(requests[index].event_id, results[index].public_id) for index in earlier]
    for index, stamp in zip(earlier, await find_stamps(tx, people, commits), strict=True):
        code = "removed" if stamp.received_at is None else None
        results[index] = results[index]._replace(code=code, **stamp._asdict())


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
