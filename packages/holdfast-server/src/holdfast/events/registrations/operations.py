"""The operations on stored registrations. `accepting.py` stores new ones."""

from collections.abc import Sequence

from msgspec import UNSET

from holdfast.events.pricing.operations import reprice
from holdfast.events.problems import EVENT_FULL, REGISTRATION_PENDING, REGISTRATION_REJECTED
from holdfast.events.registrations import sql
from holdfast.events.registrations.model import (
    DeleteRegistration,
    GetRegistration,
    ListRegistrations,
    Registration,
    RegistrationMatch,
    UpdateRegistration,
)
from holdfast.events.registrations.refusals import no_event, not_your_event
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats import held_seats
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch, LinkedAnswer
from holdfast.kit.postgres.pagination import Page, offset_page
from holdfast_verify.formats.signed_note import LogName


@refuses(NOT_FOUND, FORBIDDEN)
async def list_registrations(reader: Reader, caller: Caller, command: ListRegistrations) -> Page[Registration]:
    """List settled registrations in order of arrival, of all events or of one.

    An organizer key sees those of its own events.
    """
    if command.event_id is not None:
        organizer_id = await sql.organizer_of(reader, command.event_id)
        if organizer_id is None:
            raise no_event(command.event_id)
        if not caller.may_access(organizer_id):
            raise not_your_event(command.event_id)
    rows = await sql.list_registrations(reader, caller.tenant_id, command.event_id, command.offset, command.limit + 1)
    return offset_page(rows, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED)
async def get(reader: Reader, batch: Batch[GetRegistration]) -> Sequence[LinkedAnswer[Registration] | Problem]:
    """Read one registration: poll it after registering.

    It is refused with `registration_pending` until it is settled, drawn or paid, and with `registration_rejected` when
    there was no place.
    """
    matches = await sql.find_registrations(reader, [_lookup_key(call.caller, call.command) for call in batch.calls])
    base_url = reader.resources.settings.base_url
    return [
        _linked_answer(call.caller, call.command, match, base_url)
        for call, match in zip(batch.calls, matches, strict=True)
    ]


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_PENDING, REGISTRATION_REJECTED, EVENT_FULL)
async def update(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """Set a registration's status or the amount paid.

    The seat of a person put on the waiting list goes to the first there. The person stays there until you change it.
    """
    before = await _find_settled(tx, caller, command)
    status = before.status if command.status is UNSET else command.status
    is_moved = status != before.status
    if is_moved and status == "registered" and not await held_seats.has_free_seat(tx, command.event_id):
        message = f"Every seat of event {command.event_id} is taken."
        raise EVENT_FULL(message, errors={"status": [message]})
    amount_paid = before.amount_paid if command.amount_paid is UNSET else command.amount_paid
    await sql.update_registration(tx, command.event_id, command.user_id, status, amount_paid)
    if is_moved and status == "waitlisted":
        await held_seats.refill_seats(tx, [command.event_id])
    elif is_moved:
        await reprice(tx, [command.event_id], "registration")
    return await _find_settled(tx, caller, command)


@refuses(NOT_FOUND, FORBIDDEN, REGISTRATION_REJECTED)
async def delete(tx: Tx, caller: Caller, command: DeleteRegistration) -> None:
    """Remove a registration, also a pending one.

    Its seat goes to the first on the waiting list.
    """
    await held_seats.lock_event_of(tx, command.event_id)
    [match] = await sql.find_registrations(tx, [_lookup_key(caller, command)])
    answer = _registration_or_problem(caller, command, match)
    if isinstance(answer, Problem) and answer.type is not REGISTRATION_PENDING:
        raise answer
    await sql.delete_registration(tx, command.event_id, command.user_id, "organizer")
    if match and match.status in ("registered", "held"):
        await held_seats.refill_seats(tx, [command.event_id])


async def _find_settled(tx: Tx, caller: Caller, command: UpdateRegistration) -> Registration:
    """The settled registration. Locks its event, so that no other transaction settles or frees seats meanwhile."""
    await held_seats.lock_event_of(tx, command.event_id)
    [match] = await sql.find_registrations(tx, [_lookup_key(caller, command)])
    answer = _registration_or_problem(caller, command, match)
    if isinstance(answer, Problem):
        raise answer
    return answer


RegistrationCommand = GetRegistration | UpdateRegistration | DeleteRegistration


def _lookup_key(caller: Caller, command: RegistrationCommand) -> tuple[int, str, int | None]:
    return command.event_id, command.user_id, caller.tenant_id


def _registration_or_problem(
    caller: Caller, command: RegistrationCommand, match: RegistrationMatch | None, link: str = ""
) -> Registration | Problem:
    """The answer to a caller about one person at one event: the registration, or a problem.

    link    the value of the header Link of a problem about a stored registration
    """
    if match is None:
        return no_event(command.event_id)
    if not caller.may_access(match.organizer_id):
        return not_your_event(command.event_id)
    if match.status is None:
        return NOT_FOUND(f"{command.user_id} is not registered for event {command.event_id}.")
    if match.status == "pending":
        return REGISTRATION_PENDING(retry_after=1, link=link)
    if match.status == "held":
        return REGISTRATION_PENDING("A seat is held, and waits to be paid.", retry_after=15, link=link)
    if match.status == "in_draw":
        return REGISTRATION_PENDING(
            "The event is not open yet. Its places are drawn when it opens. People who have confirmed their mail "
            "address by then come first; a mail asks for it.",
            retry_after=30,
            link=link,
        )
    if match.status == "rejected":
        return REGISTRATION_REJECTED(reason=match.reason, link=link)
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


def _linked_answer(
    caller: Caller, command: GetRegistration, match: RegistrationMatch | None, base_url: str
) -> LinkedAnswer[Registration] | Problem:
    """The answer to a caller, with a link to the proof of the arrival if the log of the event has it."""
    link = ""
    if match and match.log_number is not None:
        proof = f"{base_url}{LogName('events', match.event_id).path}/proofs/{match.log_number}"
        link = f'<{proof}>; rel="receipt"'
    answer = _registration_or_problem(caller, command, match, link)
    return answer if isinstance(answer, Problem) else LinkedAnswer(answer, link)
