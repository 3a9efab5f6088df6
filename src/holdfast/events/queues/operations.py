"""What can be done with queues."""

from collections.abc import Sequence

import msgspec

from holdfast.events.organizers.operations import owner
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import line, passes, sql
from holdfast.events.queues.model import (
    OUT_OF_ORDER,
    CreateQueue,
    DeleteQueue,
    GetQueue,
    GetStatus,
    Joined,
    JoinQueue,
    Next,
    Queue,
    QueueRow,
    Standing,
    Status,
    UpdateQueue,
    Verified,
    VerifyToken,
    estimated_wait,
    in_order,
    present,
    status_path,
)
from holdfast.events.settings import Settings, Tx
from holdfast.kit.command import given
from holdfast.kit.operation import Call, Caller, Page, Paged, page
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, Problem, invalid

EDITABLE = (
    *("title", "description", "active", "starts_at", "ends_at", "max_queue_size"),
    *("release_rate", "target_url", "token_ttl_minutes"),
)


async def list(tx: Tx, caller: Caller, command: Paged) -> Page[Queue]:
    """List queues, oldest first.

    Organizer keys see only their organizer's queues; admin keys see all.
    """
    rows = await sql.list_queues(tx, caller.tenant_id, command.offset, command.limit + 1)
    return page([present(row, tx.settings) for row in rows], command)


async def get(tx: Tx, caller: Caller, command: GetQueue) -> Queue:
    """Read one queue, with how many wait in it now."""
    return present(_accessible(caller, command.queue_id, await sql.find_queue(tx, command.queue_id)), tx.settings)


async def create(tx: Tx, caller: Caller, command: CreateQueue) -> Queue:
    """Create a waiting room. If it is active, visitors join and are released at once.

    Send visitors to `waiting_room_url`, or show `embed_url` in an iframe: when it is their turn they are sent on to
    `target_url` with a token. An admin key names the organizer in `organizer_id`.
    """
    organizer_id = owner(caller, command.organizer_id)
    id = await sql.insert_queue(tx, {**msgspec.structs.asdict(command), "organizer_id": organizer_id})
    if id is None:
        raise invalid({"organizer_id": ["no organizer has this id"]})
    await tx.notify(line.CHANNEL)
    return await _shown(tx, id)


async def update(tx: Tx, caller: Caller, command: UpdateQueue) -> Queue:
    """Change a queue; every field is optional. Nobody loses a place by it.

    `active` false pauses: those who wait keep their places, nobody is released, nobody new joins. A new rate applies
    from now on.
    """
    before = _accessible(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
    after = msgspec.structs.replace(before, **given(command, *EDITABLE))
    if not in_order(after.starts_at, after.ends_at):
        raise invalid({"ends_at": [OUT_OF_ORDER]})
    await sql.update_queue(tx, msgspec.structs.asdict(after))
    await tx.notify(line.CHANNEL)
    return await _shown(tx, before.id)


async def delete(tx: Tx, caller: Caller, command: DeleteQueue) -> None:
    """Delete a queue, for good. Nobody is released any more, and its tokens are not valid any more."""
    row = _accessible(caller, command.queue_id, await sql.lock_queue(tx, command.queue_id))
    await sql.delete_queue(tx, row.id)
    await tx.notify(line.CHANNEL)


async def join(tx: Tx, calls: Sequence[Call[JoinQueue]]) -> Sequence[Joined | Problem]:
    """Give a visitor a place in a queue.

    202 means the place is kept, in order of arrival; poll `next.url` until the status is no longer `waiting`. Joining
    again changes nothing while the visitor waits, or was released and may still come in; later it means a new place at
    the end of the line.
    """
    taken = await line.join(tx, calls)
    line.JOINED.inc(sum(each.is_new for each in taken))
    if any(each.is_first for each in taken):
        await tx.notify(line.CHANNEL)
    return [
        _refusal(each, call.command.queue_id, tx.settings)
        if each.problem
        else Joined(Next(status_path(call.command.queue_id, call.command.visitor_id)))
        for call, each in zip(calls, taken, strict=True)
    ]


async def status(tx: Tx, calls: Sequence[Call[GetStatus]]) -> Sequence[Status | Problem]:
    """Read where a visitor stands: waiting, with position and wait, or not in the queue.

    A visitor who was released finds the release token here, for `token_ttl_minutes`; picked up within that time, it is
    valid for as long again. Neither position nor wait ever rises, unless the organizer changes or pauses the queue.
    """
    asked = [(call.command.queue_id, call.command.visitor_id) for call in calls]
    found = [_visible(call, each) for call, each in zip(calls, await sql.find_standings(tx, asked), strict=True)]
    issued = await passes.issue(tx, [each for each in found if isinstance(each, Standing)])
    return [
        each
        if isinstance(each, Problem)
        else _status(each, issued.get((each.queue_id, each.visitor_id)), tx.settings.queue_interval)
        for each in found
    ]


async def verify(tx: Tx, caller: Caller, command: VerifyToken) -> Verified:
    """Verify a release token of one of your queues, and count that it was shown.

    401 with `valid` false and a `reason` when it is not valid: `signature`, `audience`, `expired`, `used`, `revoked`.
    With `consume` it is valid this one time.
    """
    return Verified(await passes.verify(tx, caller, command.token, consume=command.consume))


def _accessible(caller: Caller, queue_id: int, row: QueueRow | None) -> QueueRow:
    if row is None:
        raise NOT_FOUND(f"No queue has the id {queue_id}.")
    if not caller.may_access(row.organizer_id):
        raise FORBIDDEN(f"Queue {queue_id} belongs to another organizer.")
    return row


def _visible(call: Call[GetStatus], standing: Standing | None) -> Standing | Problem:
    if standing is None:
        return NOT_FOUND(f"No queue has the id {call.command.queue_id}.")
    if not call.caller.may_access(standing.organizer_id):
        return FORBIDDEN(f"Queue {call.command.queue_id} belongs to another organizer.")
    return standing


def _status(standing: Standing, its_pass: passes.Pass | None, interval: int) -> Status:
    if standing.where == "waiting":
        wait = estimated_wait(standing.position, standing.release_rate, interval, standing.until_start)
        return Status("waiting", standing.position, wait)
    if its_pass is None:
        return Status("not_in_queue")
    return Status(
        "not_in_queue",
        reason="released",
        token=its_pass.token,
        token_expires_at=its_pass.expires_at,
        redirect_url=its_pass.redirect_url,
    )


def _refusal(taken: line.Taken, queue_id: int, settings: Settings) -> Problem:
    match taken.problem:
        case "not_found":
            return NOT_FOUND(f"No queue has the id {queue_id}.")
        case "forbidden":
            return FORBIDDEN(f"Queue {queue_id} belongs to another organizer.")
        case "queue_ended":
            return QUEUE_ENDED(f"Queue {queue_id} has ended.")
        case "queue_inactive":
            return QUEUE_INACTIVE(f"Queue {queue_id} is paused.", retry_after=settings.queue_interval)
        case _:
            return QUEUE_FULL(f"As many as may wait in queue {queue_id} are waiting.", retry_after=taken.retry_after)


async def _shown(tx: Tx, id: int) -> Queue:
    row = await sql.find_queue(tx, id)
    assert row
    return present(row, tx.settings)
