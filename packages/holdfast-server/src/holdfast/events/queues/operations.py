"""The operations on queues."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from holdfast.events.draws.drawing import name_draw
from holdfast.events.draws.model import DRAW_IS_FIXED, LOG_IS_NEEDED
from holdfast.events.organizers.operations import owner
from holdfast.events.paths import released_path
from holdfast.events.problems import INVALID_TOKEN, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE, QUOTA_EXCEEDED
from holdfast.events.queues import joining, release_tokens, sql
from holdfast.events.queues.joining import JoinRequest
from holdfast.events.queues.model import (
    ENDS_BEFORE_THE_DRAW,
    LEADS_TO_THE_EVENT,
    OUT_OF_ORDER,
    QUEUES_CHANNEL,
    AcceptedVisitor,
    CreateQueue,
    DeleteQueue,
    GetQueue,
    GetStatus,
    GuardableEvent,
    GuardedEvent,
    JoinQueue,
    ListGuardedEvents,
    ListOpenEvents,
    Queue,
    QueueNextStep,
    QueueRow,
    Status,
    TokenVerification,
    UpdateQueue,
    VerifyToken,
    VisitorStatus,
    estimated_wait,
    is_in_order,
    public_queue,
    status_path,
    target_of,
)
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.quotas import require_quota
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import sent_fields
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem, invalid, refuses
from holdfast.kit.operations.operation import Batch, Call
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.postgres.pagination import OffsetPage, Page
from holdfast_verify.formats.receipts import receipt_of
from holdfast_verify.formats.signed_note import LogName

_EVENT_PROBLEMS = {
    "unknown": message("you have no event with this id"),
    "over": message("is cancelled or over; choose an event that lies ahead"),
    "guarded": message("has a waiting room already; change or delete that one"),
}

EDITABLE = (
    *("title", "description", "active", "starts_at", "ends_at", "max_queue_size"),
    *("release_rate", "target_url", "token_ttl_minutes", "public_log", "draw_at"),
)


async def list_queues(reader: Reader, caller: Caller, command: OffsetPage) -> Page[Queue]:
    """List queues, oldest first. An organizer key sees its own queues, an admin key all."""
    page = await sql.list_queues(reader, caller.tenant_id, command)
    return Page([public_queue(row, reader.resources.settings) for row in page.data], page.pagination)


@refuses(NOT_FOUND, FORBIDDEN)
async def get(reader: Reader, caller: Caller, command: GetQueue) -> Queue:
    """Read one queue, with how many wait in it now."""
    return public_queue(
        _require_access(caller, command.queue_id, await sql.find_queue(reader, command.queue_id)),
        reader.resources.settings,
    )


@refuses(FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def create(tx: Tx, caller: Caller, command: CreateQueue) -> Queue:
    """Create a waiting room. Visitors are released in order of arrival, evenly spread.

    Send them to `waiting_room_url`, or frame `embed_url`: then they go to `target_url` with a token.
    """
    organizer_id = owner(caller, command.organizer_id)
    await require_quota(tx, organizer_id, message("queues"), tx.resources.settings.queues_per_organizer, sql.COUNT)
    public_log = command.public_log and tx.resources.settings.public_logs
    draw = await name_draw(tx, "draw_at", command.draw_at, is_logged=public_log)
    target_url = command.target_url
    if command.event_id is not None:
        if problem := await sql.find_event_problem(tx, command.event_id, organizer_id):
            raise invalid({"event_id": [_EVENT_PROBLEMS[problem]]})
        target_url = tx.resources.settings.base_url + released_path(command.event_id)
    fields = {**msgspec.structs.asdict(command), "organizer_id": organizer_id, "target_url": target_url}
    id = await sql.insert_queue(tx, {**fields, "public_log": public_log, **draw})
    if id is None:
        raise invalid({"organizer_id": [message("no organizer has this id")]})
    await tx.notify(QUEUES_CHANNEL)
    return await _present_stored(tx, id)


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED)
async def update(tx: Tx, caller: Caller, command: UpdateQueue) -> Queue:
    """Change a queue. Visitors keep their places."""
    before = _require_access(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
    after = msgspec.structs.replace(before, **sent_fields(command, *EDITABLE))
    if not is_in_order(after.starts_at, after.ends_at):
        raise invalid({"ends_at": [OUT_OF_ORDER]})
    after.public_log = after.public_log and (before.public_log or tx.resources.settings.public_logs)
    if after.draw_at != before.draw_at:
        if before.is_fixed and not (after.draw_at is None and before.draw_status == "void"):
            raise invalid({"draw_at": [DRAW_IS_FIXED]})
        draw = await name_draw(tx, "draw_at", after.draw_at, is_logged=after.public_log)
        after = msgspec.structs.replace(after, **draw)
    if not is_in_order(after.draw_at, after.ends_at):
        raise invalid({"ends_at": [ENDS_BEFORE_THE_DRAW]})
    if after.draw_status in {"open", "closed"} and not after.public_log:
        raise invalid({"public_log": [LOG_IS_NEEDED]})
    if before.event_id is not None and command.target_url not in (UNSET, target_of(before, tx.resources.settings)):
        raise invalid({"target_url": [LEADS_TO_THE_EVENT]})
    await sql.update_queue(tx, msgspec.structs.asdict(after))
    await tx.notify(QUEUES_CHANNEL)
    return await _present_stored(tx, before.id)


@refuses(NOT_FOUND, FORBIDDEN)
async def delete(tx: Tx, caller: Caller, command: DeleteQueue) -> None:
    """Delete a queue, for good. Releases and its tokens end."""
    row = _require_access(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
    await sql.delete_queue(tx, row.id)
    await tx.notify(QUEUES_CHANNEL)


async def end_all(tx: Tx, organizer_id: int) -> None:
    """Delete all queues of an organizer whose account ends."""
    await sql.delete_queues(tx, organizer_id)
    await tx.notify(QUEUES_CHANNEL)


@refuses(NOT_FOUND, FORBIDDEN, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE)
async def join(tx: Tx, batch: Batch[JoinQueue]) -> Sequence[AcceptedVisitor | Problem | LockedRow]:
    """Give a visitor a place in a queue.

    202 means the place is kept, in order of arrival or, with `draw_at`, by lot; poll `next.url` until the status is no
    longer `waiting`. Joining again changes nothing while the visitor waits, or was released and may still come in;
    later it means a new place at the end of the queue.
    """
    requests = [
        JoinRequest(index, call.caller.tenant_id, call.command.queue_id, call.command.visitor_id)
        for index, call in enumerate(batch.calls)
    ]
    settings = tx.resources.settings
    results = await joining.give_tickets(tx, requests, waits=batch.waits, can_commit_early=not batch.waits)
    return [
        joining.refusal(result, request, settings) or _accepted_visitor(request, result, settings.base_url)
        for request, result in zip(requests, results, strict=True)
    ]


@refuses(NOT_FOUND, FORBIDDEN)
async def status(tx: Tx, batch: Batch[GetStatus]) -> Sequence[Status | Problem | LockedRow]:
    """Read where a visitor stands: waiting, with position and wait, or not in the queue.

    A visitor who was released finds the release token here, for `token_ttl_minutes`; picked up within that time, it is
    valid for as long again. Position and wait never rise, except before a draw, or if the organizer changes or pauses
    the queue.
    """
    keys = [(call.command.queue_id, call.command.visitor_id) for call in batch.calls]
    visitors = await sql.find_visitor_statuses(tx, keys, can_commit_early=not batch.waits)
    results = [_visitor_or_problem(call, visitor) for call, visitor in zip(batch.calls, visitors, strict=True)]
    issued = await release_tokens.issue(
        tx, [result for result in results if isinstance(result, VisitorStatus)], waits=batch.waits
    )
    interval = tx.resources.settings.queue_interval
    return [
        result if isinstance(result, Problem) else _status_of(result, issued.get(result.key), interval)
        for result in results
    ]


@refuses(INVALID_TOKEN)
async def verify(tx: Tx, caller: Caller, command: VerifyToken) -> TokenVerification:
    """Verify a release token of one of your queues, and count that it was shown.

    401 with `valid` false and a `reason` when it is not valid: `signature`, `audience`, `expired`, `used`, `revoked`.
    With `consume` it is valid this one time.
    """
    return TokenVerification(await release_tokens.verify(tx, caller, command.token, consume=command.consume))


async def list_open_events(reader: Reader, caller: Caller, command: ListOpenEvents) -> list[GuardableEvent]:
    """The events of the caller before which it can put a waiting room, soonest first."""
    return await sql.list_open_events(reader, owner(caller, None))


async def list_guarded_events(reader: Reader, caller: Caller, command: ListGuardedEvents) -> list[GuardedEvent]:
    """The events behind some queues of the caller."""
    return await sql.list_guarded_events(reader, owner(caller, None), command.queue_ids)


async def list_versions(reader: Reader, organizer_ids: Sequence[int]) -> dict[int, dict[int, str]]:
    """For each organizer a text for each of its queues, by id; it changes whenever the queue does."""
    versions: dict[int, dict[int, str]] = {organizer_id: {} for organizer_id in organizer_ids}
    rows = await reader.tuples(
        """
        select organizer_id, id, xmin::text from queues
         where organizer_id = any(%(organizer_ids)s) and deleted_at is null
        """,
        {"organizer_ids": [*organizer_ids]},
    )
    for organizer_id, queue_id, version in rows:
        versions[organizer_id][queue_id] = version
    return versions


def _accepted_visitor(request: JoinRequest, result: joining.JoinResult, base_url: str) -> AcceptedVisitor:
    """The answer to a visitor who has a place, with a receipt to sign if the queue has a log."""
    answer = AcceptedVisitor(QueueNextStep(status_path(request.queue_id, request.visitor_id)))
    if result.nonce and result.joined_at:
        name = LogName("queues", request.queue_id)
        answer.receipt = receipt_of(name, base_url, result.joined_at, request.visitor_id, result.nonce, result.ticket)
    return answer


def _require_access(caller: Caller, queue_id: int, row: QueueRow | None) -> QueueRow:
    if row is None:
        raise NOT_FOUND(f"No queue has the id {queue_id}.")
    if not caller.may_access(row.organizer_id):
        raise FORBIDDEN(f"Queue {queue_id} belongs to another organizer.")
    return row


def _visitor_or_problem(call: Call[GetStatus], visitor: VisitorStatus | None) -> VisitorStatus | Problem:
    if visitor is None:
        return NOT_FOUND(f"No queue has the id {call.command.queue_id}.")
    if not call.caller.may_access(visitor.organizer_id):
        return FORBIDDEN(f"Queue {call.command.queue_id} belongs to another organizer.")
    return visitor


def _status_of(
    visitor: VisitorStatus, release_token: release_tokens.ReleaseToken | LockedRow | None, interval: int
) -> Status | LockedRow:
    if isinstance(release_token, LockedRow):
        return release_token
    if visitor.status == "waiting":
        wait = estimated_wait(visitor.position, visitor.release_rate, interval, visitor.until_start)
        return Status("waiting", visitor.position, wait)
    if release_token is None:
        return Status("not_in_queue")
    return Status(
        "not_in_queue",
        reason="released",
        token=release_token.token,
        token_expires_at=release_token.expires_at,
        redirect_url=release_token.redirect_url,
    )


async def _present_stored(reader: Reader, id: int) -> Queue:
    row = await sql.find_queue(reader, id)
    assert row
    return public_queue(row, reader.resources.settings)
