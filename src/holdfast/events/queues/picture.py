"""A queue in the last half hour, for its organizer: how many were released in each minute, and how long they waited."""

import datetime as dt
from typing import Literal

from msgspec import Struct

from holdfast.events.queues import sql
from holdfast.events.queues.model import GetQueue, QueueRow, estimated_wait
from holdfast.events.resources import Reader
from holdfast.kit.caller import Caller
from holdfast.kit.problems import NOT_FOUND, refuses

State = Literal["paused", "before", "open", "ended"]


class Minute(Struct):
    """One minute: how many were released, and how many seconds the last of them had waited; None: nobody."""

    released: int
    waited: int | None


class Picture(Struct):
    """A queue at one moment.

    wait        seconds that somebody would wait who joined now, at most
    interval    seconds in which `release_rate` visitors are released
    minutes     the last half hour, oldest minute first
    """

    state: State
    length: int
    wait: int
    interval: int
    minutes: list[Minute]
    now: dt.datetime


@refuses(NOT_FOUND)
async def look(reader: Reader, caller: Caller, command: GetQueue) -> Picture:
    """The picture of a queue of the caller."""
    row = await sql.find_queue(reader, command.queue_id)
    if row is None or row.organizer_id != caller.tenant:
        raise NOT_FOUND(f"You have no queue with the id {command.queue_id}.")
    minutes = await sql.list_minutes(reader, row.id)
    now = await sql.read_clock(reader)
    interval = reader.resources.settings.queue_interval
    until_start = int((row.starts_at - now).total_seconds()) if row.starts_at else 0
    wait = estimated_wait(row.queue_length + 1, row.release_rate, interval, until_start)
    pairs = [Minute(released, waited) for released, waited in minutes]
    return Picture(_state(row, now), row.queue_length, wait, interval, pairs, now)


def _state(row: QueueRow, now: dt.datetime) -> State:
    if row.ends_at and row.ends_at <= now:
        return "ended"
    if not row.active:
        return "paused"
    return "before" if row.starts_at and row.starts_at > now else "open"
