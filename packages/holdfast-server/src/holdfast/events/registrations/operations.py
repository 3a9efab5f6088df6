"""The operations on registrations, and the deletion of what is no longer needed of them."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.accounts import agent_limits
from holdfast.accounts.addresses import canonical
from holdfast.accounts.agent_limits import LockedLimit
from holdfast.events.pricing.operations import reprice
from holdfast.events.problems import (
    EVENT_CANCELLED,
    EVENT_EXPIRED,
    EVENT_FULL,
    QUEUE_REQUIRED,
    REGISTRATION_PENDING,
    REGISTRATION_REJECTED,
)
from holdfast.events.queues import event_releases
from holdfast.events.registrations import sql
from holdfast.events.registrations.model import (
    DRAWN,
    MAILS_WAIT,
    Accepted,
    AcceptRegistration,
    AddPerson,
    DeleteRegistration,
    GetRegistration,
    ListRegistrations,
    Registration,
    RegistrationMatch,
    RegistrationNextStep,
    UpdateRegistration,
)
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.seats import intake, seats, settlement
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import (
    DAILY_LIMIT_REACHED,
    FORBIDDEN,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.postgres.pagination import Page, offset_page
from holdfast.kit.running import idempotency
from holdfast.kit.running.idempotency import PeopleInAnswers
from holdfast.kit.running.operation import Batch
from holdfast_verify.formats.receipts import receipt_of
from holdfast_verify.formats.signed_note import LogName


@refuses(NOT_FOUND, FORBIDDEN)
async def list_registrations(reader: Reader, caller: Caller, command: ListRegistrations) -> Page[Registration]:
    """List settled registrations in order of arrival, of all events or of one.

    An organizer key sees those of its own events.
    """
    if command.event_id is not None:
        organizer_id = await sql.organizer_of(reader, command.event_id)
        if organizer_id is None:
            raise _no_event(command.event_id)
        if not caller.may_access(organizer_id):
            raise _not_your_event(command.event_id)
    rows = await sql.list_registrations(reader, caller.tenant_id, command.event_id, command.offset, command.limit + 1)
    return offset_page(rows, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED)
async def get(reader: Reader, batch: Batch[GetRegistration]) -> Sequence[Registration | Problem]:
    """Read one registration: poll it after registering.

    It is refused with `registration_pending` until it is settled, drawn or paid, and with `registration_rejected` when
    there was no place.
    """
    matches = await sql.find_registrations(reader, [_lookup_key(call.caller, call.command) for call in batch.calls])
    base_url = reader.resources.settings.base_url
    return [
        _with_link(_registration_or_problem(call.caller, call.command, match), call.caller, match, base_url)
        for call, match in zip(batch.calls, matches, strict=True)
    ]


@refuses(
    *(NOT_FOUND, FORBIDDEN, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, QUEUE_REQUIRED, VALIDATION_FAILED),
    DAILY_LIMIT_REACHED,
)
async def accept(tx: Tx, batch: Batch[AcceptRegistration]) -> Sequence[Accepted | Problem | LockedRow]:
    """Register a person for an event.

    It is stored first: ask for the result at `next.url`, or with get_registration. Registering a
    person again changes nothing, unless there was no place.
    """
    settings = tx.resources.settings
    requests = [_request(call.caller, call.command, settings) for call in batch.calls]
    tokens = [call.command.queue_token for call in batch.calls]
    return await _accept_requests(tx, requests, tokens, waits=batch.waits, with_receipts=True)


@refuses(NOT_FOUND, FORBIDDEN, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, VALIDATION_FAILED)
async def add(tx: Tx, batch: Batch[AddPerson]) -> Sequence[Accepted | Problem | LockedRow]:
    """Register a person by hand, with a name. A person who is registered keeps the name that is stored."""
    requests = [
        intake.IntakeRequest(
            call.caller.tenant_id,
            call.command.event_id,
            email=canonical(call.command.email),
            name=call.command.name,
            notify=call.command.notify,
        )
        for call in batch.calls
    ]
    return await _accept_requests(tx, requests, [None] * len(requests), waits=batch.waits)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED, EVENT_FULL)
async def update(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """Set a registration's status or the amount paid.

    The seat of a person put on the waiting list goes to the first there. The person stays there until you change it.
    """
    before = await _find_settled(tx, caller, command)
    status = before.status if command.status is UNSET else command.status
    moved = status != before.status
    if moved and status == "registered" and not await seats.has_free_seat(tx, command.event_id):
        message = f"Every seat of event {command.event_id} is taken."
        raise EVENT_FULL(message, errors={"status": [message]})
    amount_paid = before.amount_paid if command.amount_paid is UNSET else command.amount_paid
    await sql.update_registration(tx, command.event_id, command.user_id, status, amount_paid)
    if moved and status == "waitlisted":
        await seats.refill_seats(tx, [command.event_id])
    elif moved:
        await reprice(tx, [command.event_id], "registration")
    return await _find_settled(tx, caller, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_REJECTED)
async def delete(tx: Tx, caller: Caller, command: DeleteRegistration) -> None:
    """Remove a registration, also a pending one.

    Its seat goes to the first on the waiting list.
    """
    await seats.lock_event_of(tx, command.event_id)
    [match] = await sql.find_registrations(tx, [_lookup_key(caller, command)])
    answer = _registration_or_problem(caller, command, match)
    if isinstance(answer, Problem) and answer.type is not REGISTRATION_PENDING:
        raise answer
    await sql.delete_registration(tx, command.event_id, command.user_id, "organizer")
    if match and match.status in ("registered", "held"):
        await seats.refill_seats(tx, [command.event_id])


async def _find_settled(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """The settled registration. Locks its event, so that no other transaction settles or frees seats meanwhile."""
    await seats.lock_event_of(tx, command.event_id)
    [match] = await sql.find_registrations(tx, [_lookup_key(caller, command)])
    answer = _registration_or_problem(caller, command, match)
    if isinstance(answer, Problem):
        raise answer
    return answer


Limits = Mapping[int, LockedLimit | None]
"""The locked daily limits of callers by their ids. None: the credential has no limit any more."""

RegistrationCommand = GetRegistration | UpdateRegistration | DeleteRegistration


def _lookup_key(caller: Caller, command: RegistrationCommand) -> tuple[int, str, int | None]:
    return command.event_id, command.user_id, caller.tenant_id


def _registration_or_problem(
    caller: Caller, command: RegistrationCommand, match: RegistrationMatch | None
) -> Registration | Problem:
    """The answer to a caller about one person at one event: the registration, or a problem."""
    if match is None:
        return _no_event(command.event_id)
    if not caller.may_access(match.organizer_id):
        return _not_your_event(command.event_id)
    if match.status is None:
        return NOT_FOUND(f"{command.user_id} is not registered for event {command.event_id}.")
    if match.status == "pending":
        return REGISTRATION_PENDING(retry_after=1)
    if match.status == "held":
        return REGISTRATION_PENDING("A seat is held, and waits to be paid.", retry_after=15)
    if match.status == "in_draw":
        return REGISTRATION_PENDING(
            "The event is not open yet. Its places are drawn when it opens. People who have confirmed their mail "
            "address by then come first; a mail asks for it.",
            retry_after=30,
        )
    if match.status == "rejected":
        return REGISTRATION_REJECTED(reason=match.reason)
    assert match.amount_paid is not None
    assert match.received_at is not None
    assert match.email is not None
    return Registration(
        id=f"{match.event_id}-{match.public_id}",
        status=match.status,
        event_id=match.event_id,
        amount_paid=match.amount_paid,
        user_id=match.public_id,
        received_at=match.received_at,
        email=match.email,
        name=match.name,
    )


def _with_link(
    answer: Registration | Problem, caller: Caller, match: RegistrationMatch | None, base_url: str
) -> Registration | Problem:
    """The answer with a link to the proof of the arrival, if the log of the event has it."""
    if match and match.log_number is not None and caller.may_access(match.organizer_id):
        proof = f"{base_url}{LogName('events', match.event_id).path}/proofs/{match.log_number}"
        link = f'<{proof}>; rel="receipt"'
        if isinstance(answer, Problem):
            answer.link = link
        else:
            vars(answer)["link"] = link
    return answer


def link_of(registration: Registration) -> str:
    """The value of the header Link of an answer; empty: it has none."""
    return vars(registration).get("link", "")


def _no_event(event_id: int) -> Problem:
    return NOT_FOUND(f"No event has the id {event_id}.")


def _not_your_event(event_id: int) -> Problem:
    return FORBIDDEN(f"Event {event_id} belongs to another organizer.")


def _request(caller: Caller, command: AcceptRegistration, settings: Settings) -> intake.IntakeRequest:
    return intake.IntakeRequest(
        caller.tenant_id,
        command.event_id,
        command.user_id,
        canonical(command.email) if command.email else None,
        command.amount_paid,
        notify=settings.notify if command.notify is None else command.notify,
        released_from=None if command.queue_token is None else event_releases.NOT_RELEASED,
        limit_id=caller.limit_id or None,
    )


LOCKED_CODES = ("event_locked", "person_locked", event_releases.RELEASE_LOCKED_CODE)
"""The codes of results of calls that wait for a locked row."""

LIMIT_SENTENCE = "This API key or app may register {limit} people a day, and {used} are registered today."


async def _accept_requests(
    tx: Tx,
    requests: Sequence[intake.IntakeRequest],
    tokens: Sequence[str | None],
    *,
    waits: bool,
    with_receipts: bool = False,
) -> Sequence[Accepted | Problem | LockedRow]:
    if any(request.limit_id for request in requests):
        return await _accept_within_limits(tx, requests, tokens, waits=waits, with_receipts=with_receipts)
    return await _store_and_answer(tx, requests, tokens, waits=waits, with_receipts=with_receipts)


async def _accept_within_limits(
    tx: Tx,
    requests: Sequence[intake.IntakeRequest],
    tokens: Sequence[str | None],
    *,
    waits: bool,
    with_receipts: bool,
) -> Sequence[Accepted | Problem | LockedRow]:
    """Store registrations, some of them for callers with a daily limit. Calls whose limit is locked wait for it.

    The limits are locked first: a transaction that waits for one must not have the intake lock.
    """
    ids = {request.limit_id for request in requests if request.limit_id}
    limits = await (agent_limits.lock(tx, ids) if waits else agent_limits.lock_skip_locked(tx, ids))
    free: list[intake.IntakeRequest] = []
    free_tokens: list[str | None] = []
    for request, token in zip(requests, tokens, strict=True):
        if request.limit_id is None or request.limit_id in limits:
            if request.limit_id and limits[request.limit_id] is None:
                request.limit_id = None
            free.append(request)
            free_tokens.append(token)
    stored = iter(
        await _store_and_answer(tx, free, free_tokens, waits=waits, with_receipts=with_receipts, limits=limits)
    )
    return [
        next(stored)
        if request.limit_id is None or request.limit_id in limits
        else LockedRow(f"limit {request.limit_id}", request.tenant_id)
        for request in requests
    ]


async def _store_and_answer(
    tx: Tx,
    requests: Sequence[intake.IntakeRequest],
    tokens: Sequence[str | None],
    *,
    waits: bool,
    with_receipts: bool,
    limits: Limits | None = None,
) -> Sequence[Accepted | Problem | LockedRow]:
    if not requests:
        return []
    results = await event_releases.store_released(tx, requests, tokens, waits=waits, may_commit_early=not waits)
    rooms = await find_required_rooms(tx, requests, results)
    if any(result.stored for result in results):
        await tx.notify(settlement.CHANNEL)
    base_url = tx.resources.settings.base_url if with_receipts else None
    return [
        _limit_refusal(request, requests, results, limits)
        if limits and result.code == "limit_reached"
        else refusal(request.event_id, result, rooms) or _accepted(request.event_id, result, base_url)
        for request, result in zip(requests, results, strict=True)
    ]


async def find_required_rooms(
    tx: Tx, requests: Sequence[intake.IntakeRequest], results: Sequence[intake.IntakeResult]
) -> Mapping[int, str]:
    """The addresses of the waiting rooms that visitors have to go through first, by event."""
    event_ids = {
        request.event_id
        for request, result in zip(requests, results, strict=True)
        if result.code == event_releases.QUEUE_REQUIRED_CODE
    }
    return await event_releases.find_waiting_rooms(tx, event_ids) if event_ids else {}


def _limit_refusal(
    request: intake.IntakeRequest,
    requests: Sequence[intake.IntakeRequest],
    results: Sequence[intake.IntakeResult],
    limits: Limits,
) -> Problem | LockedRow:
    """The refusal of a call beyond a limit.

    The call is tried again instead if its limit has room: another call of the limit waits for a locked row, or names a
    person whom a call with another limit registers.
    """
    limit_id = request.limit_id
    limit = limits[limit_id] if limit_id else None
    assert limit
    registered_by: dict[tuple[int, str | None], int | None] = {}
    is_locked = False
    for other, result in zip(requests, results, strict=True):
        if result.stored:
            # The first call of a person registers it.
            registered_by.setdefault((other.event_id, result.public_id), other.limit_id)
        is_locked |= other.limit_id == limit_id and result.code in LOCKED_CODES
    used = limit.used + [*registered_by.values()].count(limit_id)
    if is_locked or used < limit.allowed:
        return LockedRow(f"limit {limit_id}", request.tenant_id)
    return replace(limit, used=used).refusal(LIMIT_SENTENCE)


def refusal(event_id: int, result: intake.IntakeResult, rooms: Mapping[int, str]) -> Problem | LockedRow | None:
    """The reason why a registration was not accepted; None if it was. `rooms`: see `find_required_rooms`."""
    if result.code is None:
        return None
    if result.code == event_releases.QUEUE_REQUIRED_CODE:
        return QUEUE_REQUIRED(waiting_room_url=rooms.get(event_id))
    if result.code == event_releases.RELEASE_LOCKED_CODE:
        return LockedRow(f"release for event {event_id}", result.organizer_id)
    if result.code == "event_locked":
        return LockedRow(event_id, result.organizer_id)
    if result.code == "person_locked":
        return LockedRow(result.public_id, result.organizer_id)
    return REFUSALS[result.code](event_id)


def _accepted(event_id: int, result: intake.IntakeResult, base_url: str | None) -> Accepted:
    """The answer to an accepted call. With the base address, it has a receipt to sign if the event has a log."""
    accepted = Accepted(RegistrationNextStep(f"/api/registrations/{event_id}/{result.public_id}"))
    if result.is_drawn:
        accepted.message = DRAWN
    if result.mails_wait:
        accepted.message += MAILS_WAIT
    if base_url is not None and result.nonce and result.received_at:
        name, person = LogName("events", event_id), result.logged_as or result.public_id or ""
        accepted.receipt = receipt_of(name, base_url, result.received_at, person, result.nonce)
    return accepted


REFUSALS: Mapping[str, Callable[[int], Problem]] = {
    "not_found": _no_event,
    "forbidden": _not_your_event,
    "event_draft": lambda _: invalid({"event_id": ["is a draft; publish it, then people can register"]}),
    "event_cancelled": lambda event_id: EVENT_CANCELLED(f"Event {event_id} has been cancelled."),
    "event_expired": lambda event_id: EVENT_EXPIRED(f"Event {event_id} has already taken place."),
    "event_full": lambda event_id: EVENT_FULL(
        f"Every seat of event {event_id} is taken and its waiting list has no room."
    ),
    "no_such_user": lambda _: invalid(
        {"user_id": ["no person known to you has this public id; register by email instead"]}
    ),
    "account_being_created": lambda _: SERVICE_UNAVAILABLE("The account could not be created just now.", retry_after=1),
    "removed": lambda _: SERVICE_UNAVAILABLE("The registration was removed at the same time.", retry_after=1),
}
"""The problem for each code of the intake statement."""


REJECTION_BATCH_SIZE = 5_000
"""Rejections that one transaction deletes."""

ACCOUNT_SCAN_SIZE = 5_000
"""Accounts that one statement reads."""

ACCOUNT_BATCH_SIZE = 200
"""Accounts that one transaction deletes. No registration is accepted during that transaction."""


async def forget_rejections(tx: Tx) -> int:
    """Delete a batch of rejections, 30 days after their events. Returns the number deleted."""
    return await sql.delete_old_rejections(tx, REJECTION_BATCH_SIZE)


async def forget_registrants(steps: Steps) -> int:
    """Delete the accounts, older than a day, of people without registration and payment. Returns the number deleted.

    A person who is registered again by e-mail gets a new account.
    """
    total, last = 0, 0
    while registrants := await steps.read(
        lambda reader, after=last: sql.find_registrants(reader, after, ACCOUNT_SCAN_SIZE)
    ):
        last = max(registrants)
        unused = [id for id, is_used in registrants.items() if not is_used]
        for start in range(0, len(unused), ACCOUNT_BATCH_SIZE):
            total += await steps.transact(
                lambda tx, ids=unused[start : start + ACCOUNT_BATCH_SIZE]: _delete_registrants(tx, ids)
            )
    return total


async def _delete_registrants(tx: Tx, ids: list[int]) -> int:
    # Exclusive: a registration that is being accepted for one of them is stored first, or its account is gone.
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": intake.ADVISORY_LOCK_ID})
    return await sql.delete_registrants(tx, ids)


def person_of(answer: object) -> str | None:
    """The public id of the person that an answer is about; None: it is about no person."""
    return answer.next.url.rpartition("/")[2] if isinstance(answer, Accepted) else None


PEOPLE_IN_ANSWERS = PeopleInAnswers(
    person_of, "select public_id from users where public_id = any(%(people)s) order by id for key share skip locked"
)
"""The people in stored answers: such an answer has the public id of the person, and the nonce that opens the
commitment in the public log.

Erasing locks the account first, and replaces its public id. So an answer is stored before that, or not at all.
"""


async def forget_answers(tx: Tx, user_id: int) -> None:
    """Erase the stored answers about a person whose account is locked, under each public id that it had."""
    public_ids = await tx.tuples(
        """
        select public_id from users where id = %(user_id)s
         union
        select logged_as from registrations where user_id = %(user_id)s and logged_as is not null
        """,
        {"user_id": user_id},
    )
    await idempotency.forget_people(tx, [public_id for (public_id,) in public_ids])
