"""The history of a queue: the releases in each minute of the last half hour, with the waits before them."""

import datetime as dt
from typing import Literal

from msgspec import Struct

from holdfast.events.queues import sql
from holdfast.events.queues.model import GetQueue, GuardableEvent, QueueRow, estimated_wait
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses

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
    event: GuardableEvent | None


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
    event = None if row.event_id is None else await sql.find_guardable_event(reader, row.event_id)
    return QueueHistory(_status_of(row, now), row.queue_length, wait, interval, pairs, now, event)


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
