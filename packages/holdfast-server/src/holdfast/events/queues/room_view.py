"""The values on the page of a waiting room, for a visitor or for all who wait."""

from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from holdfast.events.draws.model import DrawCheck, DrawState
from holdfast.events.queues import release_tokens, room
from holdfast.events.queues.model import estimated_wait
from holdfast.events.queues.room import RoomSnapshot
from holdfast.events.queues.rows import QueueRow, RoomRow

DRAW_REFRESH_SECONDS = 300
"""The wait by which pages choose when to reload before a draw: they change seldom, and then all at once."""

State = Literal[
    "arriving",
    "waiting",
    "before",
    "draw",
    "paused",
    "released",
    "missed",
    "ended",
    "full",
    "closed",
    "crowded",
    "busy",
    "gone",
]
"""The states of a page. Each has a template in `pages/`."""


class RoomView(NamedTuple):
    """The values for the template.

    refresh     the number of seconds after which the page reloads; None: never
    progress    the part of the wait that is over, in percent; None: it is unknown
    tickets     the last ticket
    enter       of a released visitor: the address of the target with the token. `origin` and `host` are of the target
    shared      the path of the progress of the queue, for a visitor who waits
    waited      seconds since the visitor joined
    draw        how far the draw of the queue is; None: there is none
    log         the path of the public log of the order; empty: the queue has none
    check       what the order of a drawn queue is computed from; else None
    is_late     whether the visitor came after the list of the draw had closed
    is_shared   whether it is that progress: then names in braces stand for the numbers of a visitor, and `serving` to
                `until_start` are what they are reckoned from
    """

    state: State
    title: str = ""
    description: str | None = None
    refresh: int | None = None
    position: int = 0
    behind: int = 0
    wait: int = 0
    progress: int | None = None
    too_late: bool = False
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    paused_at: datetime | None = None
    now: datetime | None = None
    enter: str = ""
    token: str = ""
    origin: str = ""
    host: str = ""
    expires_at: datetime | None = None
    shared: str = ""
    ticket: int = 0
    waited: int = 0
    draw: DrawState | None = None
    draw_at: datetime | None = None
    draw_round: int = 0
    round_at: datetime | None = None
    entries: int = 0
    check: DrawCheck | None = None
    log: str = ""
    is_late: bool = False
    is_shared: bool = False
    serving: int = 0
    tickets: int = 0
    seconds_per_visitor: float = 0
    until_start: int = 0


def state_of(queue: QueueRow, until_start: int) -> State:
    """The state of the page of a visitor who waits."""
    if queue.draw_state not in {None, "drawn"}:
        return "draw"
    return "paused" if not queue.active else "before" if until_start > 0 else "waiting"


def draw_fields(queue: RoomRow) -> dict[str, Any]:
    """The values for the template about the draw of a queue."""
    if queue.draw_at is None or queue.draw_round is None:
        return {}
    return {
        "draw": queue.draw_state,
        "draw_at": queue.draw_at,
        "draw_round": queue.draw_round,
        "round_at": queue.draw_round_at,
        "entries": queue.queue_length if queue.draw_entries is None else queue.draw_entries,
        "check": queue.check,
    }


def view_of(snapshot: RoomSnapshot, interval: int) -> RoomView:
    """The view for a visitor who has or had a place."""
    queue, visitor = snapshot.queue, snapshot.standing
    if snapshot.release_token:
        return RoomView(
            "released",
            queue.title,
            enter=snapshot.release_token.redirect_url,
            token=snapshot.release_token.token,
            origin=release_tokens.origin(queue.target_url),
            host=release_tokens.host(queue.target_url),
            expires_at=snapshot.release_token.expires_at,
        )
    if visitor.where != "waiting":
        return RoomView("ended" if visitor.where == "ended" else "missed", queue.title)
    wait = estimated_wait(visitor.position, visitor.release_rate, interval, visitor.until_start)
    waited = visitor.since_joined or 0
    state = state_of(queue, visitor.until_start)
    return RoomView(
        state,
        queue.title,
        queue.description,
        **draw_fields(queue),
        is_late=visitor.is_late,
        refresh=room.refresh_seconds(
            max(wait, DRAW_REFRESH_SECONDS) if state == "draw" else wait if queue.active else max(wait, 30)
        ),
        position=visitor.position,
        behind=max(0, queue.queue_length - visitor.position),
        wait=wait,
        progress=max(1, min(99, 100 * waited // max(1, waited + wait))) if queue.active else None,
        shared=f"/queues/{queue.id}/progress",
        ticket=visitor.place or 0,
        tickets=visitor.serving + queue.queue_length,
        log=room.log_path(queue),
        waited=waited,
        too_late=queue.ends_at is not None and queue.ends_at < snapshot.now + timedelta(seconds=wait),
        starts_at=queue.starts_at,
        ends_at=queue.ends_at,
        paused_at=queue.paused_at,
        now=snapshot.now,
    )
