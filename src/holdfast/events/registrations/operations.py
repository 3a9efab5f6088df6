"""What can be done with registrations."""

from collections.abc import Sequence

from msgspec import UNSET

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
    Next,
    Registration,
    UpdateRegistration,
)
from holdfast.events.settings import Tx
from holdfast.kit.operation import Call, Caller, Page, Paged, page
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, Problem, invalid


async def list(tx: Tx, caller: Caller, command: Paged) -> Page[Registration]:
    """List settled registrations in order of arrival.

    Organizer keys see only registrations of their own events; admin keys see all.
    """
    return page(await sql.list_registrations(tx, caller.tenant_id, command.offset, command.limit + 1), command)


async def get(tx: Tx, calls: Sequence[Call[GetRegistration]]) -> Sequence[Registration | Problem]:
    """Read one registration: this is what to poll after registering.

    It is there once it is registered or waitlisted. Until then it is refused: `registration_pending` while it waits to
    be settled, `registration_rejected` when there was no place, `not_found` when it was never asked for.
    """
    asked = [(call.command.event_id, call.command.user_id) for call in calls]
    found = await sql.find_registrations(tx, asked)
    return [_answer(call.caller, call.command, each) for call, each in zip(calls, found, strict=True)]


async def accept(tx: Tx, calls: Sequence[Call[AcceptRegistration]]) -> Sequence[Accepted | Problem]:
    """Register a person for an event: by public id, or by e-mail, which creates an account when there is none.

    Accepted means stored, not yet seated: ask at `next.url`, or get_registration. Registrations are settled strictly in
    order of arrival: seats first, then the waiting list. Registering the same person again changes nothing, unless
    there was no place: then it is a new try.
    """
    taken = await intake.accept(tx, calls)
    if any(each.stored for each in taken):
        await tx.notify(settlement.CHANNEL)
    return [
        _refusal(each.problem, call.command) if each.problem else _accepted(call.command.event_id, str(each.user_id))
        for call, each in zip(calls, taken, strict=True)
    ]


async def update(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """Set a registration's status or the amount paid.

    Putting someone on the waiting list gives the seat to the first who waits there. Nobody can be registered beyond
    capacity: raise `capacity` first.
    """
    before = await _settled(tx, caller, command)
    status = before.status if command.status is UNSET else command.status
    moved = status != before.status
    if moved and status == "registered" and not await sql.has_free_seat(tx, command.event_id):
        raise EVENT_FULL(f"Every seat of event {command.event_id} is taken.")
    amount_paid = before.amount_paid if command.amount_paid is UNSET else command.amount_paid
    await sql.update_registration(tx, command.event_id, command.user_id, status, amount_paid)
    if moved and status == "waitlisted":
        await seating.pass_on(tx, command.event_id, but_not=command.user_id)
    elif moved:
        await reprice(tx, [command.event_id], "registration")
    return await _settled(tx, caller, command)


async def delete(tx: Tx, caller: Caller, command: DeleteRegistration) -> None:
    """Remove a registration, also one that still waits to be settled.

    A seat it held goes to the first on the waiting list.
    """
    await sql.lock_event_of(tx, command.event_id)
    found = (await sql.find_registrations(tx, [(command.event_id, command.user_id)]))[0]
    answer = _answer(caller, command, found)
    if isinstance(answer, Problem) and answer.kind is not REGISTRATION_PENDING:
        raise answer
    await sql.delete_registration(tx, command.event_id, command.user_id)
    if isinstance(answer, Registration) and answer.status == "registered":
        await seating.pass_on(tx, command.event_id)


async def _settled(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """The settled registration, with its event locked so that nothing settles or frees seats meanwhile."""
    await sql.lock_event_of(tx, command.event_id)
    found = (await sql.find_registrations(tx, [(command.event_id, command.user_id)]))[0]
    answer = _answer(caller, command, found)
    if isinstance(answer, Problem):
        raise answer
    return answer


Named = GetRegistration | UpdateRegistration | DeleteRegistration


def _answer(caller: Caller, command: Named, found: Found | None) -> Registration | Problem:
    """What a caller may know of one person at one event."""
    if found is None:
        return NOT_FOUND(f"No event has the id {command.event_id}.")
    if not caller.may_access(found.organizer_id):
        return FORBIDDEN(f"Event {command.event_id} belongs to another organizer.")
    if found.status is None:
        return NOT_FOUND(f"{command.user_id} is not registered for event {command.event_id}.")
    if found.status == "pending":
        return REGISTRATION_PENDING(retry_after=1)
    if found.status == "rejected":
        return REGISTRATION_REJECTED(reason=found.reason)
    assert found.amount_paid is not None
    assert found.received_at is not None
    id = f"{found.event_id}-{found.user_id}"
    return Registration(id, found.status, found.event_id, found.amount_paid, found.user_id, found.received_at)


def _accepted(event_id: int, public_id: str) -> Accepted:
    return Accepted(Next(f"/api/registrations/{event_id}/{public_id}"))


def _refusal(problem: str, command: AcceptRegistration) -> Problem:
    event_id = command.event_id
    match problem:
        case "not_found":
            return NOT_FOUND(f"No event has the id {event_id}.")
        case "forbidden":
            return FORBIDDEN(f"Event {event_id} belongs to another organizer.")
        case "event_cancelled":
            return EVENT_CANCELLED(f"Event {event_id} has been cancelled.")
        case "event_expired":
            return EVENT_EXPIRED(f"Event {event_id} has already taken place.")
        case "event_full":
            return EVENT_FULL(f"Every seat of event {event_id} is taken and its waiting list has no room.")
        case "no_such_user":
            return invalid({"user_id": ["nobody has this public id; register by email instead"]})
        case _:
            return SERVICE_UNAVAILABLE("The account could not be created just now.", retry_after=1)
