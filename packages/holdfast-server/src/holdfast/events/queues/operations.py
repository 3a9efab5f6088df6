"""The operations on queues, their history, and the deletion of what is no longer needed.

The history has the releases and waits in each minute of the last half hour. Visitors and releases are deleted 30 days
after the token of a release can last be valid; those of a deleted queue soon. A deleted queue is deleted with its last
visitor, unless it has a public log: people have receipts and heads of that log. Then the row stays without the texts of
the organizer, and the log stays readable.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Literal, LiteralString

import msgspec
from msgspec import UNSET, Struct

from holdfast.events.draws.drawing import name_draw
from holdfast.events.draws.model import DRAW_IS_FIXED, LOG_IS_NEEDED
from holdfast.events.organizers.operations import owner
from holdfast.events.paths import released_path
from holdfast.events.problems import INVALID_TOKEN, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE, QUOTA_EXCEEDED
from holdfast.events.queues import joining, release_tokens, sql
from holdfast.events.queues.joining import Visitor
from holdfast.events.queues.model import (
    ENDS_BEFORE_THE_DRAW,
    LEADS_TO_THE_EVENT,
    OUT_OF_ORDER,
    QUEUES_CHANNEL,
    CreateQueue,
    DeleteQueue,
    EventBehind,
    GetQueue,
    GetStatus,
    GuardedEvent,
    Joined,
    JoinQueue,
    ListGuardedEvents,
    ListOpenEvents,
    Queue,
    QueueNextStep,
    QueueRow,
    Status,
    UpdateQueue,
    Verified,
    VerifyToken,
    VisitorStatus,
    estimated_wait,
    is_in_order,
    public_queue,
    status_path,
    target_of,
)
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.quotas import require_room
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import sent_fields
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem, invalid, refuses
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.postgres.pagination import OffsetPage, Page
from holdfast.kit.running.operation import Batch, Call
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
        _accessible(caller, command.queue_id, await sql.find_queue(reader, command.queue_id)), reader.resources.settings
    )


@refuses(FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def create(tx: Tx, caller: Caller, command: CreateQueue) -> Queue:
    """Create a waiting room. Visitors are released in order of arrival, evenly spread.

    Send them to `waiting_room_url`, or frame `embed_url`: then they go to `target_url` with a token.
    """
    organizer_id = owner(caller, command.organizer_id)
    await require_room(tx, organizer_id, message("queues"), tx.resources.settings.queues_per_organizer, sql.COUNT)
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
    before = _accessible(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
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
    row = _accessible(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
    await sql.delete_queue(tx, row.id)
    await tx.notify(QUEUES_CHANNEL)


async def end_all(tx: Tx, organizer_id: int) -> None:
    """Delete all queues of an organizer whose account ends."""
    await sql.delete_queues(tx, organizer_id)
    await tx.notify(QUEUES_CHANNEL)


@refuses(NOT_FOUND, FORBIDDEN, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE)
async def join(tx: Tx, batch: Batch[JoinQueue]) -> Sequence[Joined | Problem | LockedRow]:
    """Give a visitor a place in a queue.

    202 means the place is kept, in order of arrival or, with `draw_at`, by lot; poll `next.url` until the status is no
    longer `waiting`. Joining again changes nothing while the visitor waits, or was released and may still come in;
    later it means a new place at the end of the line.
    """
    visitors = [
        Visitor(index, call.caller.tenant_id, call.command.queue_id, call.command.visitor_id)
        for index, call in enumerate(batch.calls)
    ]
    settings = tx.resources.settings
    results = await joining.join(tx, visitors, waits=batch.waits, may_commit_early=not batch.waits)
    return [
        joining.refusal(result, visitor, settings) or _joined(visitor, result, settings.base_url)
        for visitor, result in zip(visitors, results, strict=True)
    ]


@refuses(NOT_FOUND, FORBIDDEN)
async def status(tx: Tx, batch: Batch[GetStatus]) -> Sequence[Status | Problem | LockedRow]:
    """Read where a visitor stands: waiting, with position and wait, or not in the queue.

    A visitor who was released finds the release token here, for `token_ttl_minutes`; picked up within that time, it is
    valid for as long again. Neither position nor wait ever rises, unless the organizer changes or pauses the queue.
    """
    keys = [(call.command.queue_id, call.command.visitor_id) for call in batch.calls]
    visitors = await sql.find_visitor_statuses(tx, keys, may_commit_early=not batch.waits)
    results = [_visible(call, visitor) for call, visitor in zip(batch.calls, visitors, strict=True)]
    issued = await release_tokens.issue(
        tx, [result for result in results if isinstance(result, VisitorStatus)], waits=batch.waits
    )
    interval = tx.resources.settings.queue_interval
    return [
        result if isinstance(result, Problem) else _status_answer(result, issued.get(result.key), interval)
        for result in results
    ]


@refuses(INVALID_TOKEN)
async def verify(tx: Tx, caller: Caller, command: VerifyToken) -> Verified:
    """Verify a release token of one of your queues, and count that it was shown.

    401 with `valid` false and a `reason` when it is not valid: `signature`, `audience`, `expired`, `used`, `revoked`.
    With `consume` it is valid this one time.
    """
    return Verified(await release_tokens.verify(tx, caller, command.token, consume=command.consume))


def _joined(visitor: Visitor, result: joining.JoinResult, base_url: str) -> Joined:
    """The answer to a visitor who has a place, with a receipt to sign if the queue has a log."""
    joined = Joined(QueueNextStep(status_path(visitor.queue_id, visitor.visitor_id)))
    if result.nonce and result.joined_at:
        name = LogName("queues", visitor.queue_id)
        joined.receipt = receipt_of(name, base_url, result.joined_at, visitor.visitor_id, result.nonce, result.ticket)
    return joined


def _accessible(caller: Caller, queue_id: int, row: QueueRow | None) -> QueueRow:
    if row is None:
        raise NOT_FOUND(f"No queue has the id {queue_id}.")
    if not caller.may_access(row.organizer_id):
        raise FORBIDDEN(f"Queue {queue_id} belongs to another organizer.")
    return row


def _visible(call: Call[GetStatus], visitor: VisitorStatus | None) -> VisitorStatus | Problem:
    if visitor is None:
        return NOT_FOUND(f"No queue has the id {call.command.queue_id}.")
    if not call.caller.may_access(visitor.organizer_id):
        return FORBIDDEN(f"Queue {call.command.queue_id} belongs to another organizer.")
    return visitor


def _status_answer(
    visitor: VisitorStatus, release_token: release_tokens.ReleaseToken | LockedRow | None, interval: int
) -> Status | LockedRow:
    if isinstance(release_token, LockedRow):
        return release_token
    if visitor.where == "waiting":
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


QueueHistoryStatus = Literal["paused", "before", "open", "ended", "open_list", "closed_list", "void_draw"]


class Minute(Struct):
    """One minute: the number of released visitors, and the seconds that the last had waited; None: no release."""

    released: int
    waited: int | None


class QueueHistory(Struct):
    """A queue now, with its last half hour.

    wait        the most seconds that a visitor would wait who joined now
    interval    seconds in which `release_rate` visitors are released
    minutes     the last half hour, oldest minute first
    event       the event behind it; None: another site
    """

    status: QueueHistoryStatus
    length: int
    wait: int
    interval: int
    minutes: list[Minute]
    now: dt.datetime
    event: EventBehind | None


@refuses(NOT_FOUND)
async def read_history(reader: Reader, caller: Caller, command: GetQueue) -> QueueHistory:
    """The history of a queue of the caller."""
    row = await sql.find_queue(reader, command.queue_id)
    if row is None or row.organizer_id != caller.tenant:
        raise NOT_FOUND(f"You have no queue with the id {command.queue_id}.")
    minutes = await sql.list_minutes(reader, row.id)
    now = await sql.read_clock(reader)
    interval = reader.resources.settings.queue_interval
    until_start = int((row.starts_at - now).total_seconds()) if row.starts_at else 0
    wait = estimated_wait(row.queue_length + 1, row.release_rate, interval, until_start)
    pairs = [Minute(released, waited) for released, waited in minutes]
    event = None if row.event_id is None else await sql.find_event_behind(reader, row.event_id)
    return QueueHistory(_status_of(row, now), row.queue_length, wait, interval, pairs, now, event)


async def list_open_events(reader: Reader, caller: Caller, command: ListOpenEvents) -> list[EventBehind]:
    """The events of the caller before which it can put a waiting room, soonest first."""
    return await sql.list_open_events(reader, owner(caller, None))


async def list_guarded_events(reader: Reader, caller: Caller, command: ListGuardedEvents) -> list[GuardedEvent]:
    """The events behind some queues of the caller."""
    return await sql.list_guarded_events(reader, owner(caller, None), command.queue_ids)


def _status_of(row: QueueRow, now: dt.datetime) -> QueueHistoryStatus:
    if row.ends_at and row.ends_at <= now:
        return "ended"
    match row.draw_status:
        case "void":
            return "void_draw"
        case "closed":
            return "closed_list"
        case "open" if row.active:
            return "open_list"
        case _:
            pass
    if not row.active:
        return "paused"
    return "before" if row.starts_at and row.starts_at > now else "open"


NO_URL = "https://deleted.invalid"
"""The target of a deleted queue whose log is kept: an address that cannot exist (RFC 2606)."""

DELETE_BATCH_SIZE = 20_000
"""The most visitors, and the most releases, that one run deletes, so that requests do not wait for it."""

# A token can be picked up for `token_ttl_minutes`, and is then valid for the same time again.
IS_OLD: LiteralString = "released_at < now() - interval '30 days' - token_ttl_minutes * interval '2 minutes'"
"""SQL: whether a release of a queue is so old that its visitors are not needed any more."""


async def forget_visitors(tx: Tx) -> int:
    """Delete one batch of rows that are no longer needed. Returns the number of deleted rows."""
    return await _delete_visitors(tx) + await _delete_releases(tx) + await _delete_queues(tx)


async def _delete_visitors(tx: Tx) -> int:
    """Delete released visitors, and all visitors of deleted queues. Returns the number deleted."""
    return await tx.value(
        f"""
        with old_visitor as (
            select visitor.queue_id, visitor.visitor_id
              from queues
             cross join lateral (
                select case when deleted_at is not null then tickets
                            else (select max(last_ticket) from queue_releases
                                   where queue_id = queues.id
                                     and {IS_OLD}) end as up_to
                  ) as released
             -- Tickets of a drawn list have other places, so they are deleted when the whole list is past.
             cross join lateral (
                select case when deleted_at is not null or drawn_at is null or released.up_to >= draw_entries
                            then released.up_to end as up_to) as old_tickets
             cross join lateral (
                select queue_id, visitor_id from queue_visitors
                 where queue_id = queues.id and ticket <= old_tickets.up_to
                   and (queues.deleted_at is not null or expires_at is null or expires_at < now())
                 limit %(limit)s for update skip locked) as visitor
             limit %(limit)s),
        deleted as (
            delete from queue_visitors using old_visitor
             where queue_visitors.queue_id = old_visitor.queue_id and queue_visitors.visitor_id = old_visitor.visitor_id
         returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


async def _delete_releases(tx: Tx) -> int:
    """Delete releases that have no visitor any more. Returns the number deleted."""
    return await tx.value(
        f"""
        with old_release as (
            select queue_id, last_ticket
              from queue_releases join queues on queues.id = queue_releases.queue_id
             cross join lateral (
                select case when is_drawn then 1 else first_ticket end as first,
                       case when is_drawn then greatest(last_ticket, draw_entries) else last_ticket end as last
                  from (select drawn_at is not null and first_ticket <= draw_entries as is_drawn) as release
                   ) as tickets_of
             where not exists (select from queue_visitors
                                where queue_id = queues.id and ticket <= tickets_of.last and ticket >= tickets_of.first)
               and (deleted_at is not null
                    or {IS_OLD})
             limit %(limit)s for update of queue_releases skip locked),
        deleted as (
            delete from queue_releases using old_release
             where queue_releases.queue_id = old_release.queue_id
               and queue_releases.last_ticket = old_release.last_ticket
         returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


async def _delete_queues(tx: Tx) -> int:
    """Delete queues that were deleted and are empty, or their texts if they have a log. Returns how many."""
    return await tx.value(
        """
        with empty as (
            select id, exists (select from logs where queue_id = queues.id) as has_log from queues
             where deleted_at is not null and target_url <> %(no_url)s
               and not exists (select from queue_visitors where queue_id = queues.id)
               and not exists (select from queue_releases where queue_id = queues.id)
               for update skip locked),
        deleted as (
            delete from queues using empty where queues.id = empty.id and not has_log returning 1),
        cleared as (
            update queues set title = '', description = null, target_url = %(no_url)s
              from empty where queues.id = empty.id and has_log
         returning 1)
        select (select count(*) from deleted) + (select count(*) from cleared)
        """,
        {"no_url": NO_URL},
    )
