"""What can be done with registrations."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET

from holdfast.accounts.signin.addresses import canonical
from holdfast.events.pricing.changes import reprice
from holdfast.events.problems import (
    EVENT_CANCELLED,
    EVENT_EXPIRED,
    EVENT_FULL,
    REGISTRATION_PENDING,
    REGISTRATION_REJECTED,
)
from holdfast.events.registrations import intake, seating, settlement, sql
from holdfast.events.registrations.model import (
    Accepted,
    AcceptRegistration,
    DeleteRegistration,
    Found,
    GetRegistration,
    ListRegistrations,
    Next,
    Registration,
    UpdateRegistration,
)
from holdfast.events.resources import Reader, Tx
from holdfast.events.settings import Settings
from holdfast.kit.batch import Locked
from holdfast.kit.caller import Caller
from holdfast.kit.modes import Batch
from holdfast.kit.pagination import Page, offset_page
from holdfast.kit.problems import (
    FORBIDDEN,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)


@refuses(NOT_FOUND, FORBIDDEN)
async def list(reader: Reader, caller: Caller, command: ListRegistrations) -> Page[Registration]:
    """List settled registrations in order of arrival, of all events or of one.

    An organizer key sees those of its own events.
    """
    if command.event_id is not None:
        organizer_id = await sql.organizer_of(reader, command.event_id)
        if organizer_id is None:
            raise _no_event(command.event_id)
        if not caller.may_access(organizer_id):
            raise _of_another(command.event_id)
    rows = await sql.list_registrations(reader, caller.tenant_id, command.event_id, command.offset, command.limit + 1)
    return offset_page(rows, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED)
async def get(reader: Reader, batch: Batch[GetRegistration]) -> Sequence[Registration | Problem]:
    """Read one registration: this is what to poll after registering.

    Until it is registered or waitlisted it is refused: `registration_pending` while it waits to be settled, or a held
    seat to be paid; `registration_rejected` when there was no place.
    """
    found = await sql.find_registrations(reader, [_asked(call.caller, call.command) for call in batch.calls])
    return [_answer(call.caller, call.command, each) for call, each in zip(batch.calls, found, strict=True)]


@refuses(NOT_FOUND, FORBIDDEN, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, VALIDATION_FAILED)
async def accept(tx: Tx, batch: Batch[AcceptRegistration]) -> Sequence[Accepted | Problem | Locked]:
    """Register a person for an event, by public id or by e-mail.

    Accepted means stored, not yet seated: ask at `next.url`, or get_registration. Registering the same person again
    changes nothing, unless there was no place: then it is a new try.
    """
    settings = tx.resources.settings
    requests = [_request(call.caller, call.command, settings) for call in batch.calls]
    outcomes = await intake.accept(tx, requests, waits=batch.waits)
    if any(each.stored for each in outcomes):
        await tx.notify(settlement.CHANNEL)
    return [_outcome(call.command, each) for call, each in zip(batch.calls, outcomes, strict=True)]


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED, EVENT_FULL)
async def update(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """Set a registration's status or the amount paid.

    Putting someone on the waiting list gives the seat to the first who waits there.
    """
    before = await _settled(tx, caller, command)
    status = before.status if command.status is UNSET else command.status
    moved = status != before.status
    if moved and status == "registered" and not await sql.has_free_seat(tx, command.event_id):
        message = f"Every seat of event {command.event_id} is taken."
        raise EVENT_FULL(message, errors={"status": [message]})
    amount_paid = before.amount_paid if command.amount_paid is UNSET else command.amount_paid
    await sql.update_registration(tx, command.event_id, command.user_id, status, amount_paid)
    if moved and status == "waitlisted":
        await seating.pass_on(tx, [command.event_id], except_user=command.user_id)
    elif moved:
        await reprice(tx, [command.event_id], "registration")
    return await _settled(tx, caller, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_REJECTED)
async def delete(tx: Tx, caller: Caller, command: DeleteRegistration) -> None:
    """Remove a registration, also one that still waits to be settled.

    A seat it held goes to the first on the waiting list.
    """
    await sql.lock_event_of(tx, command.event_id)
    [found] = await sql.find_registrations(tx, [_asked(caller, command)])
    answer = _answer(caller, command, found)
    if isinstance(answer, Problem) and answer.type is not REGISTRATION_PENDING:
        raise answer
    await sql.delete_registration(tx, command.event_id, command.user_id)
    if found and found.status in ("registered", "held"):
        await seating.pass_on(tx, [command.event_id])


async def _settled(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """The settled registration. Its event is locked, so that no other transaction settles or frees seats meanwhile."""
    await sql.lock_event_of(tx, command.event_id)
    [found] = await sql.find_registrations(tx, [_asked(caller, command)])
    answer = _answer(caller, command, found)
    if isinstance(answer, Problem):
        raise answer
    return answer


Named = GetRegistration | UpdateRegistration | DeleteRegistration


def _asked(caller: Caller, command: Named) -> tuple[int, str, int | None]:
    return command.event_id, command.user_id, caller.tenant_id


def _answer(caller: Caller, command: Named, found: Found | None) -> Registration | Problem:
    """The registration, or the problem, that a caller gets for one person at one event."""
    if found is None:
        return _no_event(command.event_id)
    if not caller.may_access(found.organizer_id):
        return _of_another(command.event_id)
    if found.status is None:
        return NOT_FOUND(f"{command.user_id} is not registered for event {command.event_id}.")
    if found.status == "pending":
        return REGISTRATION_PENDING(retry_after=1)
    if found.status == "held":
        return REGISTRATION_PENDING("A seat is held, and waits to be paid.", retry_after=15)
    if found.status == "rejected":
        return REGISTRATION_REJECTED(reason=found.reason)
    assert found.amount_paid is not None
    assert found.received_at is not None
    assert found.email is not None
    return Registration(
        id=f"{found.event_id}-{found.user_id}",
        status=found.status,
        event_id=found.event_id,
        amount_paid=found.amount_paid,
        user_id=found.user_id,
        received_at=found.received_at,
        email=found.email,
        name=found.name,
    )


def _no_event(event_id: int) -> Problem:
    return NOT_FOUND(f"No event has the id {event_id}.")


def _of_another(event_id: int) -> Problem:
    return FORBIDDEN(f"Event {event_id} belongs to another organizer.")


def _request(caller: Caller, command: AcceptRegistration, settings: Settings) -> intake.Request:
    return intake.Request(
        caller.tenant_id,
        command.event_id,
        command.user_id,
        canonical(command.email) if command.email else None,
        command.amount_paid,
        notify=settings.notify if command.notify is None else command.notify,
    )


def _outcome(command: AcceptRegistration, outcome: intake.Outcome) -> Accepted | Problem | Locked:
    return refusal(command.event_id, outcome) or _accepted(command.event_id, str(outcome.user_id))


def refusal(event_id: int, outcome: intake.Outcome) -> Problem | Locked | None:
    """Why a registration was not accepted; None if it was."""
    if outcome.problem is None:
        return None
    if outcome.problem == "event_locked":
        return Locked(event_id, outcome.organizer_id)
    if outcome.problem == "person_locked":
        return Locked(outcome.user_id, outcome.organizer_id)
    return REFUSALS[outcome.problem](event_id)


def _accepted(event_id: int, public_id: str) -> Accepted:
    return Accepted(Next(f"/api/registrations/{event_id}/{public_id}"))


REFUSALS: Mapping[str, Callable[[int], Problem]] = {
    "not_found": _no_event,
    "forbidden": _of_another,
    "event_cancelled": lambda event_id: EVENT_CANCELLED(f"Event {event_id} has been cancelled."),
    "event_expired": lambda event_id: EVENT_EXPIRED(f"Event {event_id} has already taken place."),
    "event_full": lambda event_id: EVENT_FULL(
        f"Every seat of event {event_id} is taken and its waiting list has no room."
    ),
    "no_such_user": lambda _: invalid(
        {"user_id": ["nobody known to you has this public id; register by email instead"]}
    ),
    "account_in_the_making": lambda _: SERVICE_UNAVAILABLE("The account could not be created just now.", retry_after=1),
}
"""The problem for each code of the intake statement."""
