"""How a waiting room looks: the values for its templates, which the page of a visitor shares with the progress."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from holdfast.events.draws.model import DrawCheck, DrawStatus
from holdfast.events.paths import organizer_path
from holdfast.events.queues import release_tokens, room
from holdfast.events.queues.model import QueueRow, RoomRow
from holdfast.events.site import SITE
from holdfast.kit.http.handler import Header, Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast_verify.formats.beacon import CHAIN
from holdfast_verify.formats.drawn_order import DRAWN_ORDER

RoomStatus = Literal[
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
"""The statuses of a visitor, or why a page shows none. Each has a template in `pages/`."""


EventSeats = Literal["free", "waiting_list", "full", "closed"]
"""What the event behind a waiting room has left for visitors who are let in."""


def event_fields(queue: RoomRow) -> dict[str, Any]:
    """The values for the template about the event behind a queue."""
    if queue.event_id is None:
        return {}
    seats: EventSeats = (
        "closed"
        if queue.event_closed
        else "free"
        if queue.event_left
        else "waiting_list"
        if queue.event_waitlist_left
        else "full"
    )
    return {"event_id": queue.event_id, "seats": seats, "seats_left": queue.event_left or 0}


class RoomView(NamedTuple):
    """The values for the template.

    refresh     the number of seconds after which the page reloads; None: never
    progress    the part of the wait that is over, in percent; None: it is unknown
    tickets     the last ticket
    enter       of a released visitor: the address of the target with the token. `origin` and `host` are of the target
    event_id    the event that it stands before; None: another site
    seats       what a visitor who is let in can still get there; `seats_left`: how many seats
    shared      the path of the progress of the queue, for a visitor who waits
    waited      seconds since the visitor joined
    draw        how far the draw of the queue is; None: there is none
    log         the path of the public log of the order; empty: the queue has none
    check       what the order of a drawn queue is computed from; else None
    is_late     whether the visitor came after the list of the draw had closed
    is_shared   whether it is that progress: then names in braces stand for the numbers of a visitor, and `serving` to
                `until_start` are the numbers that these are computed from
    until_start seconds until visitors can be released
    """

    status: RoomStatus
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
    event_id: int | None = None
    seats: EventSeats | None = None
    seats_left: int = 0
    expires_at: datetime | None = None
    shared: str = ""
    ticket: int = 0
    waited: int = 0
    draw: DrawStatus | None = None
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


def status_of(queue: QueueRow, until_start: int) -> RoomStatus:
    """The status of a room for a visitor who waits."""
    if queue.draw_status not in {None, "drawn"}:
        return "draw"
    return "paused" if not queue.active else "before" if until_start > 0 else "waiting"


def draw_fields(queue: RoomRow) -> dict[str, Any]:
    """The values for the template about the draw of a queue."""
    if queue.draw_at is None or queue.draw_round is None:
        return {}
    return {
        "draw": queue.draw_status,
        "draw_at": queue.draw_at,
        "draw_round": queue.draw_round,
        "round_at": queue.draw_round_at,
        "entries": queue.queue_length if queue.draw_entries is None else queue.draw_entries,
        "check": queue.check,
    }


def show_room(
    request: Request,
    view: RoomView,
    status: int = 200,
    *,
    queue: RoomRow | None = None,
    framed: bool,
    headers: Sequence[Header] = (),
) -> Reply:
    """The page of a waiting room, or the part of it that is the same for all who wait."""
    language = language_of(request)
    numbers = (
        {name: f"{{{name}}}" for name in ("position", "behind", "wait", "progress", "number", "ticket")}
        if view.is_shared
        else {
            "position": language.number(view.position),
            "behind": language.number(view.behind),
            "wait": room.wait_in_words(view.wait, language),
            "progress": str(view.progress),
            "number": language.number(view.ticket),
            "ticket": str(view.ticket),
        }
    )
    return SITE.page(
        f"queues/pages/{view.status}.html",
        status,
        language=language,
        framed=framed,
        headers=headers,
        room=view,
        shared=language.at(view.shared) if view.shared else "",
        event_path=language.at(f"/events/{view.event_id}") if view.event_id else "",
        is_confirmed=queue is None or queue.is_confirmed,
        queue=queue,
        organizer_path=organizer_path(queue.organizer_slug) if queue and queue.is_confirmed else "",
        target_origin=release_tokens.origin(queue.target_url) if queue else "",
        target_host=release_tokens.host(queue.target_url) if queue else "",
        beacon=CHAIN,
        drawn_order=DRAWN_ORDER,
        **numbers,
    )
