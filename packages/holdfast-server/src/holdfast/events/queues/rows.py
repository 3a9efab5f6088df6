"""Rows of queues and visitors, as statements read them."""

import datetime as dt
from typing import Literal

from msgspec import Struct

from holdfast.events.draws.model import DrawColumns


class QueueRow(DrawColumns, kw_only=True):
    """A stored queue with its derived length.

    is_fixed    whether `draw_at` cannot change any more, because somebody has entered or the list has closed
    """

    id: int
    organizer_id: int
    title: str
    description: str | None
    active: bool
    paused_at: dt.datetime | None
    starts_at: dt.datetime | None
    ends_at: dt.datetime | None
    max_queue_size: int | None
    release_rate: int
    target_url: str
    token_ttl_minutes: int
    public_log: bool
    queue_length: int
    is_fixed: bool


class RoomRow(QueueRow, kw_only=True):
    """A stored queue for its page.

    is_confirmed    whether the owner of the organizer's address has confirmed it
    """

    is_confirmed: bool


class VisitorStatus(Struct):
    """The status of a visitor in a queue.

    ticket, place                what the visitor got on joining; the place in line, which a draw changes
    is_late                      whether the visitor came after the list of a draw had closed
    until_start, since_joined    seconds
    issued_at, expires_at        times of the token, in seconds of the Unix epoch
    """

    queue_id: int
    visitor_id: str
    organizer_id: int
    serving: int
    release_rate: int
    target_url: str
    until_start: int
    since_joined: int | None
    ticket: int | None
    place: int | None
    is_late: bool
    token_id: str | None
    issued_at: int | None
    expires_at: int | None
    where: Literal["unknown", "waiting", "ended", "released", "past"]

    @property
    def key(self) -> tuple[int, str]:
        """The ids of the queue and of the visitor."""
        return self.queue_id, self.visitor_id

    @property
    def position(self) -> int:
        """The position of a waiting visitor: 1 is the first. Before a draw: the number of entries."""
        assert self.place is not None
        return self.place - self.serving


class UsedToken(Struct):
    """A valid token that was verified."""

    target_url: str
    use_count: int
