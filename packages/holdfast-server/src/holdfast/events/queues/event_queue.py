"""The waiting room before an event, as the pages of the event show it."""

import datetime as dt
from typing import Any, Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.resources import Reader


class EventQueue(Struct, frozen=True):
    """The waiting room before an event.

    waiting    how many visitors wait
    status     `draw`: the order of its visitors is not drawn yet; `before`: it begins at `starts_at`
    rate       how many visitors it releases in an interval
    """

    id: int
    waiting: int
    status: Literal["open", "before", "draw", "paused", "ended"]
    rate: int
    starts_at: dt.datetime | None


EVENT_QUEUE: LiteralString = """
    case when events.queue_id is not null
         then (select jsonb_build_object(
                          'id', id, 'waiting', case when ends_at <= now() then 0 else tickets - serving end,
                          'status', case when ends_at <= now() then 'ended' when not active then 'paused'
                                         when draw_at is not null and drawn_at is null then 'draw'
                                         when starts_at > now() then 'before' else 'open' end,
                          'rate', release_rate, 'starts_at', starts_at)
                 from queues where id = events.queue_id limit 1) end"""
"""SQL for the waiting room before an event, as `read_event_queue` reads it; null: it has none."""


def read_event_queue(value: Any) -> EventQueue | None:
    """What `EVENT_QUEUE` has given."""
    return None if value is None else msgspec.convert(value, EventQueue)


async def find_event_queue(reader: Reader, event_id: int) -> EventQueue | None:
    """The waiting room before an event; None: it has none."""
    return read_event_queue(await reader.value(f"select {EVENT_QUEUE} from events where id = %(id)s", {"id": event_id}))
