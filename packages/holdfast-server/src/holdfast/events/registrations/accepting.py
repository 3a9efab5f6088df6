"""Accepting registrations: each is stored as pending, or refused."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from holdfast.accounts.addresses import canonical
from holdfast.accounts.agents import limits as agent_limits
from holdfast.accounts.agents.limits import DailyUse
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, QUEUE_REQUIRED
from holdfast.events.queues import event_releases
from holdfast.events.registrations.model import (
    DRAWN,
    MAILS_WAIT,
    AcceptedRegistration,
    AcceptRegistration,
    AddPerson,
    RegistrationNextStep,
)
from holdfast.events.registrations.refusals import find_required_rooms, refusal
from holdfast.events.resources import Tx
from holdfast.events.seats import intake, settlement
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import (
    DAILY_LIMIT_REACHED,
    FORBIDDEN,
    NOT_FOUND,
    VALIDATION_FAILED,
    Problem,
    refuses,
)
from holdfast.kit.operations.operation import Batch
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast_verify.formats.receipts import receipt_of
from holdfast_verify.formats.signed_note import LogName

LOCKED_CODES = ("event_locked", "person_locked", event_releases.RELEASE_LOCKED_CODE)
"""The codes of results of calls that wait for a locked row."""

LIMIT_SENTENCE = "This API key or app may register {limit} people a day, and {used} are registered today."

DailyUses = Mapping[int, DailyUse | None]
"""What was used of daily limits today, by the ids of the limits. None: the credential has no limit any more."""


@refuses(
    *(NOT_FOUND, FORBIDDEN, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, QUEUE_REQUIRED, VALIDATION_FAILED),
    DAILY_LIMIT_REACHED,
)
async def accept(tx: Tx, batch: Batch[AcceptRegistration]) -> Sequence[AcceptedRegistration | Problem | LockedRow]:
    """Register a person for an event.

    It is stored first: ask for the result at `next.url`, or with get_registration. Registering a
    person again keeps the place, if there was one.
    """
    settings = tx.resources.settings
    requests = [_request(call.caller, call.command, settings) for call in batch.calls]
    return await _store_within_limits(tx, requests, waits=batch.waits)


@refuses(NOT_FOUND, FORBIDDEN, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, VALIDATION_FAILED)
async def add(tx: Tx, batch: Batch[AddPerson]) -> Sequence[AcceptedRegistration | Problem | LockedRow]:
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
    return await _store(tx, requests, waits=batch.waits, with_receipts=False)


def _request(caller: Caller, command: AcceptRegistration, settings: Settings) -> intake.IntakeRequest:
    return intake.IntakeRequest(
        caller.tenant_id,
        command.event_id,
        command.user_id,
        canonical(command.email) if command.email else None,
        command.amount_paid,
        notify=settings.notify if command.notify is None else command.notify,
        released_from=None if command.queue_token is None else event_releases.NOT_RELEASED,
        release_token=command.queue_token,
        limit_id=caller.limit_id or None,
    )


async def _store_within_limits(
    tx: Tx, requests: Sequence[intake.IntakeRequest], *, waits: bool
) -> Sequence[AcceptedRegistration | Problem | LockedRow]:
    """Store registrations, some of them for callers with a daily limit. Calls whose limit is locked wait for it.

    The limits are locked first: a transaction that waits for one must not have the intake lock.
    """
    limit_ids = {request.limit_id for request in requests if request.limit_id}
    if not limit_ids:
        return await _store(tx, requests, waits=waits, with_receipts=True)
    limits = await (agent_limits.lock(tx, limit_ids) if waits else agent_limits.lock_skip_locked(tx, limit_ids))
    locked_ids = limit_ids - limits.keys()
    ready = [request for request in requests if request.limit_id not in locked_ids]
    for request in ready:
        if request.limit_id and limits[request.limit_id] is None:
            request.limit_id = None
    answers = iter(await _store(tx, ready, waits=waits, with_receipts=True, limits=limits))
    return [
        LockedRow(f"limit {request.limit_id}", request.tenant_id) if request.limit_id in locked_ids else next(answers)
        for request in requests
    ]


async def _store(
    tx: Tx,
    requests: Sequence[intake.IntakeRequest],
    *,
    waits: bool,
    with_receipts: bool,
    limits: DailyUses | None = None,
) -> Sequence[AcceptedRegistration | Problem | LockedRow]:
    if not requests:
        return []
    results = await event_releases.store_and_use_releases(tx, requests, waits=waits, can_commit_early=not waits)
    rooms = await find_required_rooms(tx, requests, results)
    if any(result.is_stored for result in results):
        await tx.notify(settlement.PENDING_CHANNEL)
    base_url = tx.resources.settings.base_url if with_receipts else None
    return [
        _limit_refusal(request, requests, results, limits)
        if limits and result.code == "limit_reached"
        else refusal(request.event_id, result, rooms) or _accepted_registration(request.event_id, result, base_url)
        for request, result in zip(requests, results, strict=True)
    ]


def _limit_refusal(
    request: intake.IntakeRequest,
    requests: Sequence[intake.IntakeRequest],
    results: Sequence[intake.IntakeResult],
    limits: DailyUses,
) -> Problem | LockedRow:
    """The refusal of a call beyond a limit. It is tried again instead if the limit may not be used up.

    That is so if another call of the limit waits for a locked row, or if a call with another limit came first with the
    same person.
    """
    limit_id = request.limit_id
    limit = limits[limit_id] if limit_id else None
    assert limit
    registered_by: dict[tuple[int, str | None], int | None] = {}
    is_locked = False
    for other, result in zip(requests, results, strict=True):
        if result.is_stored:
            # The first call of a person registers it.
            registered_by.setdefault((other.event_id, result.public_id), other.limit_id)
        is_locked |= other.limit_id == limit_id and result.code in LOCKED_CODES
    used_count = limit.used + [*registered_by.values()].count(limit_id)
    if is_locked or used_count < limit.allowed:
        return LockedRow(f"limit {limit_id}", request.tenant_id)
    return replace(limit, used=used_count).refusal(LIMIT_SENTENCE)


def _accepted_registration(event_id: int, result: intake.IntakeResult, base_url: str | None) -> AcceptedRegistration:
    """The answer to an accepted call. With the base address, it has a receipt to sign if the event has a log."""
    answer = AcceptedRegistration(RegistrationNextStep(f"/api/registrations/{event_id}/{result.public_id}"))
    if result.is_drawn:
        answer.message = DRAWN
    if result.mails_wait:
        answer.message += MAILS_WAIT
    if base_url is not None and result.nonce and result.received_at:
        name, person = LogName("events", event_id), result.logged_as or result.public_id or ""
        answer.receipt = receipt_of(name, base_url, result.received_at, person, result.nonce)
    return answer
