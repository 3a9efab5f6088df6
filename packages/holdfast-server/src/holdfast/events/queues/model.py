"""Queues and their visitors: commands, answers, and their rows as statements read them. A queue is a waiting room."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Literal
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.events.draws.model import DrawColumns
from holdfast.events.paths import EventId, QueueId, released_path
from holdfast.events.settings import Settings
from holdfast.kit.contract.addresses import is_web_address
from holdfast.kit.contract.command import Command, Id, NotBlank, Timestamp, rule
from holdfast.kit.contract.messages import FieldName, message
from holdfast_verify.formats.receipts import Receipt

QUEUES_CHANNEL = "queues"
"""The channel for notices that a queue may have a visitor to release sooner than expected."""

_PERCENT_ENCODED = {code: quote(chr(code), safe="") for code in range(128)}

MAX_TTL_MINUTES = 43_200
"""The most minutes for which a release token is valid: 30 days."""

OUT_OF_ORDER = message("must be later than %(field)s", field=FieldName("starts_at"))
ENDS_BEFORE_THE_DRAW = message("must be later than %(field)s", field=FieldName("draw_at"))
LEADS_TO_THE_EVENT = message("is left out: visitors of this waiting room are sent to its event")
NO_ADDRESS = message("must be an http or https address with a host, without user or password")


class QueueRow(DrawColumns):
    """A stored queue with its derived length.

    event_id    the event that it stands before; None: it stands before another site
    is_fixed    whether `draw_at` cannot change any more, because it has an entry or the list has closed
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
    event_id: int | None
    token_ttl_minutes: int
    public_log: bool
    queue_length: int
    is_fixed: bool


class GuardableEvent(Struct):
    """An event that a waiting room stands before, or could stand before."""

    id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    published: bool
    is_closed: Annotated[bool, Meta(description="Whether it is cancelled, or has begun.")]


class GuardedEvent(Struct):
    """An event that has a waiting room."""

    queue_id: int
    title: str
    is_closed: bool


class RoomRow(QueueRow):
    """A stored queue for its page.

    organizer_name         None: the owner of the organizer's address has not confirmed it
    event_left             how many seats the event behind it has left; None: there is no event
    event_waitlist_left    how many places its waiting list has left
    event_closed           whether it is cancelled or has begun
    """

    organizer_name: str | None
    organizer_slug: str
    event_left: int | None
    event_waitlist_left: int | None
    event_closed: bool | None

    @property
    def is_confirmed(self) -> bool:
        """Whether it is known who runs the queue."""
        return self.organizer_name is not None


class VisitorStatus(Struct):
    """The status of a visitor in a queue.

    ticket, place                what the visitor got on joining; the place in line, which a draw changes
    is_late                      whether the visitor came after the list of a draw had closed
    event_id                     the event behind the queue; None: another site
    until_start, since_joined    seconds
    issued_at, expires_at        times of the token, in seconds of the Unix epoch
    """

    queue_id: int
    visitor_id: str
    organizer_id: int
    serving: int
    release_rate: int
    target_url: str
    event_id: int | None
    until_start: int
    since_joined: int | None
    ticket: int | None
    place: int | None
    is_late: bool
    token_id: str | None
    issued_at: int | None
    expires_at: int | None
    status: Literal["unknown", "waiting", "ended", "released", "past"]

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
    event_id: int | None
    use_count: int


Title = Annotated[NotBlank, Meta(min_length=1, max_length=300, description="For visitors.")]
Description = Annotated[Annotated[str, Meta(max_length=10_000)] | None, Meta(description="Plain text.")]
StartsAt = Annotated[Timestamp | None, Meta(description="When releases begin.")]
EndsAt = Annotated[Timestamp | None, Meta(description="When joining and releases end.")]
MaxSize = Annotated[Annotated[int, Meta(ge=1, le=2**31 - 1)] | None, Meta(description="How many may wait.")]
Rate = Annotated[
    int,
    Meta(ge=1, le=1_000_000, description="Visitors released a minute."),
]
TargetUrl = Annotated[str, Meta(max_length=2000, description="Where released visitors go.")]
Ttl = Annotated[
    int,
    Meta(ge=1, le=MAX_TTL_MINUTES, description="Minutes to get the token, then to use it."),
]
DrawAt = Annotated[Timestamp | None, Meta(description="Entries close and are drawn.")]
PublicLog = Annotated[bool, Meta(description="Publish order and volume.")]
VisitorId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=r"^(?!\.{1,2}$(?!\n))",
        extra={"noun": message("any text but . and ..")},
        description="Your name for the visitor, any text but `.` and `..`, which no address can hold.",
    ),
]


class GetQueue(Command):
    queue_id: QueueId


class ListOpenEvents(Command):
    """Asks for the events that a new waiting room can stand before."""


class ListGuardedEvents(Command):
    """Asks for the events behind some queues of the caller."""

    queue_ids: Annotated[Sequence[QueueId], Meta(max_length=100)]


class DeleteQueue(Command):
    queue_id: QueueId


class CreateQueue(Command):
    title: Title
    release_rate: Rate
    token_ttl_minutes: Ttl
    target_url: Annotated[TargetUrl | None, Meta(description="Where released visitors go.")] = None
    event_id: Annotated[EventId | None, Meta(description="Or your event: only they register.")] = None
    active: Annotated[bool, Meta(description="False pauses.")] = True
    description: Description = None
    starts_at: StartsAt = None
    ends_at: EndsAt = None
    max_queue_size: MaxSize = None
    draw_at: DrawAt = None
    public_log: PublicLog = True
    organizer_id: Annotated[Id | None, Meta(description="For admin keys; else yours.")] = None

    @rule("ends_at", "starts_at")
    def _ends_after_it_starts(self) -> str | None:
        return None if is_in_order(self.starts_at, self.ends_at) else OUT_OF_ORDER

    @rule("ends_at", "draw_at")
    def _ends_after_the_draw(self) -> str | None:
        return None if is_in_order(self.draw_at, self.ends_at) else ENDS_BEFORE_THE_DRAW

    @rule("target_url")
    def _has_web_address(self) -> str | None:
        return None if self.target_url is None or is_web_address(self.target_url) else NO_ADDRESS

    @rule("target_url", "event_id")
    def _leads_to_one_place(self) -> str | None:
        if self.target_url is None and self.event_id is None:
            return message("is required")
        return None if self.target_url is None or self.event_id is None else LEADS_TO_THE_EVENT


class UpdateQueue(Command):
    queue_id: QueueId
    title: Title | UnsetType = UNSET
    release_rate: Rate | UnsetType = UNSET
    target_url: TargetUrl | UnsetType = UNSET
    token_ttl_minutes: Annotated[Ttl, Meta(description="For new tokens.")] | UnsetType = UNSET
    active: Annotated[bool, Meta(description="False pauses.")] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    starts_at: StartsAt | UnsetType = UNSET
    ends_at: EndsAt | UnsetType = UNSET
    max_queue_size: Annotated[MaxSize, Meta(description="null: no limit.")] | UnsetType = UNSET
    draw_at: DrawAt | UnsetType = UNSET
    public_log: PublicLog | UnsetType = UNSET

    @rule("target_url")
    def _has_web_address(self) -> str | None:
        return None if self.target_url is UNSET or is_web_address(self.target_url) else NO_ADDRESS


class JoinQueue(Command):
    queue_id: QueueId
    visitor_id: VisitorId


class GetStatus(Command):
    queue_id: QueueId
    visitor_id: VisitorId


class RoomVisitor(Command):
    """A browser on the page of a waiting room."""

    queue_id: Id
    visitor_id: str


class VerifyToken(Command):
    token: Annotated[str, Meta(description="The release token.")]
    consume: Annotated[bool, Meta(description="Whether the token is used up: it is not valid a second time.")] = False


class Queue(Struct):
    """A queue as its organizer sees it."""

    id: int
    active: bool
    title: str
    description: str | None
    queue_length: Annotated[int, Meta(description="How many wait now.")]
    organizer_id: int
    starts_at: Timestamp | None
    ends_at: Timestamp | None
    max_queue_size: int | None
    draw_at: Annotated[Timestamp | None, Meta(description="When the list closes that is drawn; null: no draw.")]
    release_rate: Annotated[int, Meta(description="Visitors released per interval.")]
    target_url: str
    event_id: Annotated[int | None, Meta(description="The event for which released visitors register.")]
    token_ttl_minutes: int
    public_log: bool
    embed_url: Annotated[str, Meta(description="The waiting room, made for an iframe.")]
    waiting_room_url: Annotated[str, Meta(description="The waiting room, to send visitors to.")]


class QueueNextStep(Struct):
    """What to do next."""

    url: str
    action: Literal["poll_status"] = "poll_status"
    description: str = "GET this address until `status` is no longer `waiting`."


class AcceptedVisitor(Struct):
    """The visitor has a place."""

    next: QueueNextStep
    message: str = "The visitor is in the queue, and keeps the place."
    status: Literal["accepted"] = "accepted"
    receipt: Receipt | UnsetType = UNSET


class Status(Struct, omit_defaults=True):
    """Where a visitor stands. A visitor who was released finds the token here while it is valid."""

    status: Literal["waiting", "not_in_queue"]
    position: Annotated[
        int | UnsetType, Meta(description="While waiting: 1 is the first. Before a draw: how many are in it.")
    ] = UNSET
    estimated_wait_seconds: Annotated[
        int | UnsetType, Meta(description="While waiting: at the present rate, if the queue is not paused.")
    ] = UNSET
    reason: Annotated[Literal["released"] | UnsetType, Meta(description="With a token.")] = UNSET
    token: Annotated[str | UnsetType, Meta(description="The release token, a JWT.")] = UNSET
    token_expires_at: Timestamp | UnsetType = UNSET
    redirect_url: Annotated[str | UnsetType, Meta(description="`target_url` with the token in its query.")] = UNSET


class TokenData(Struct):
    """What a valid token says, and how often it was shown."""

    queue_id: int
    visitor_id: str
    token_id: str
    issued_at: Timestamp
    expires_at: Timestamp
    target_url: str
    use_count: Annotated[int, Meta(description="How often it was verified here, this time included.")]
    first_use: bool


class TokenVerification(Struct):
    """The token is valid."""

    data: TokenData
    valid: Literal[True] = True


def is_in_order(starts_at: dt.datetime | None, ends_at: dt.datetime | None) -> bool:
    """Whether a queue ends later than it starts, or has no start or no end."""
    return starts_at is None or ends_at is None or starts_at < ends_at


def estimated_wait(position: int, rate: int, interval: int, until_start: int) -> int:
    """The most seconds until a position is released: releases are evenly spread and in the order of tickets.

    interval       seconds in which `rate` visitors are released
    until_start    seconds until the queue starts
    """
    return max(0, until_start) - (-position * interval // rate)


def status_path(queue_id: int, visitor_id: str) -> str:
    """The path of a visitor's status. The id is percent-encoded."""
    # Thousands join in a second, and `quote` takes four times as long.
    encoded = visitor_id.translate(_PERCENT_ENCODED) if visitor_id.isascii() else quote(visitor_id, safe="")
    return f"/api/queues/{queue_id}/status/{encoded}"


def target_of(queue: QueueRow | VisitorStatus | UsedToken, settings: Settings) -> str:
    """Where the visitors of a queue are sent. The address of an event follows the address of this service."""
    return queue.target_url if queue.event_id is None else settings.base_url + released_path(queue.event_id)


def public_queue(row: QueueRow, settings: Settings) -> Queue:
    """The public form of a stored queue."""
    room = f"{settings.base_url}/queues/{row.id}"
    return Queue(
        id=row.id,
        active=row.active,
        title=row.title,
        description=row.description,
        queue_length=row.queue_length,
        organizer_id=row.organizer_id,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        max_queue_size=row.max_queue_size,
        draw_at=row.draw_at,
        release_rate=row.release_rate,
        target_url=target_of(row, settings),
        event_id=row.event_id,
        token_ttl_minutes=row.token_ttl_minutes,
        public_log=row.public_log,
        embed_url=f"{room}/embed",
        waiting_room_url=room,
    )
