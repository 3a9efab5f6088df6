"""Rows of queues and visitors, as statements read them."""

import datetime as dt
from typing import Literal

from msgspec import Struct

DrawState = Literal["open", "closed", "drawn", "void"]
"""How far a draw is: people enter, the list is closed, it is drawn, or it could not be frozen in time."""


class QueueRow(Struct):
    """A stored queue with its derived length.

    draw_round      the round of the beacon that draws the list, which is due at `draw_round_at`
    draw_entries    of a frozen list: the number of its tickets
    is_fixed        whether `draw_at` cannot change any more, because somebody has entered or the list has closed
    is_closed       whether the list of a draw has closed
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
    draw_at: dt.datetime | None
    draw_round: int | None
    draw_round_at: dt.datetime | None
    draw_entries: int | None
    drawn_at: dt.datetime | None
    draw_void_at: dt.datetime | None
    is_fixed: bool
    is_closed: bool

    @property
    def draw_state(self) -> DrawState | None:
        """How far the draw is; None: there is no draw."""
        if self.draw_at is None:
            return None
        if self.drawn_at or self.draw_void_at:
            return "drawn" if self.drawn_at else "void"
        return "closed" if self.is_closed else "open"


class DrawCheck(Struct):
    """What the order of a drawn queue is computed from. The root is in base64, the signature in hex."""

    origin: str
    root: str
    signature: str


class RoomRow(QueueRow):
    """A stored queue for its page.

    is_confirmed    whether the owner of the organizer's address has confirmed it
    check_...       see `check`
    """

    is_confirmed: bool
    check_origin: str | None
    check_root: str | None
    check_signature: str | None

    @property
    def check(self) -> DrawCheck | None:
        """What the order of the queue is computed from; None: it is not drawn."""
        if self.check_origin is None or self.check_root is None or self.check_signature is None:
            return None
        return DrawCheck(self.check_origin, self.check_root, self.check_signature)


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
