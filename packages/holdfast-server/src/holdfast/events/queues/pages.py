"""The routes of queues outside the table: the public keys of release tokens, and the pages of waiting rooms.

A browser gets a secret in a cookie, and a place as soon as it sends the cookie back. So a client without cookies gets
no place. In a frame the cookie is partitioned by the top-level site, since browsers allow no other cookie there.

`/queues/<queue_id>/progress` is the part of the page that is the same for all who wait: its `main`, with names in
braces where the page of a visitor has its own numbers. `room.js` fills them in from the ticket of the visitor. So pages
poll an address that caches in front may keep, and their own address only when it is their turn.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from holdfast.events.draws.model import DrawCheck, DrawStatus
from holdfast.events.log.signed_answers import receipt_file
from holdfast.events.paths import id_of, organizer_path, released_path
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import release_tokens, room
from holdfast.events.queues.model import QueueRow, RoomRow, RoomVisit, estimated_wait
from holdfast.events.queues.room import READ_PROGRESS, QueueProgress, RoomSnapshot, log_path
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, RATE_LIMITED, Problem, ProblemType
from holdfast.kit.http.answers import cached_refusals
from holdfast.kit.http.handler import (
    Access,
    Handler,
    Header,
    Reply,
    Request,
    admit,
    headers_of,
)
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import redirect
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.process.discovery import keys_document
from holdfast.kit.running.operation import Operation, batched, single
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.cookie_secrets import is_cookie_secret, new_cookie_secret
from holdfast_verify.formats.beacon import CHAIN
from holdfast_verify.formats.drawn_order import DRAWN_ORDER
from holdfast_verify.formats.receipts import ReceiptFile

DRAW_REFRESH_SECONDS = 300
"""The wait by which pages choose when to reload before a draw: they change seldom, and then all at once."""

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
        if queue.event_room
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
    """The state of the page of a visitor who waits."""
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


def view_of(snapshot: RoomSnapshot, interval: int) -> RoomView:
    """The view for a visitor who has or had a place."""
    queue, visitor = snapshot.queue, snapshot.visitor
    if snapshot.release_token:
        return RoomView(
            "released",
            queue.title,
            enter=snapshot.release_token.redirect_url,
            token=snapshot.release_token.token,
            origin=release_tokens.origin(queue.target_url),
            host=release_tokens.host(queue.target_url),
            event_id=queue.event_id,
            expires_at=snapshot.release_token.expires_at,
        )
    if visitor.where != "waiting":
        return RoomView("ended" if visitor.where == "ended" else "missed", queue.title, **event_fields(queue))
    wait = estimated_wait(visitor.position, visitor.release_rate, interval, visitor.until_start)
    waited = visitor.since_joined or 0
    status = status_of(queue, visitor.until_start)
    return RoomView(
        status,
        queue.title,
        queue.description,
        **draw_fields(queue),
        **event_fields(queue),
        is_late=visitor.is_late,
        refresh=room.refresh_seconds(
            max(wait, DRAW_REFRESH_SECONDS) if status == "draw" else wait if queue.active else max(wait, 30)
        ),
        position=visitor.position,
        behind=max(0, queue.queue_length - visitor.position),
        wait=wait,
        progress=max(1, min(99, 100 * waited // max(1, waited + wait))) if status == "waiting" else None,
        shared=f"/queues/{queue.id}/progress",
        ticket=visitor.place or 0,
        tickets=visitor.serving + queue.queue_length,
        log=room.log_path(queue),
        waited=waited,
        until_start=visitor.until_start,
        too_late=queue.ends_at is not None and queue.ends_at < snapshot.now + timedelta(seconds=wait),
        starts_at=queue.starts_at,
        ends_at=queue.ends_at,
        paused_at=queue.paused_at,
        now=snapshot.now,
    )


VISIT = Operation("visit_waiting_room", None, batched(room.visit))
JOIN = Operation("join_waiting_room", None, batched(room.join), limit="waiting room joins")
GET_RECEIPT = Operation("get_waiting_room_receipt", None, single(room.get_receipt))
OPERATIONS = (VISIT, JOIN, GET_RECEIPT, READ_PROGRESS)
"""The operations of the pages. They have no routes and no tools of their own."""

JWKS = "/.well-known/queue-jwks.json"
COOKIE_MAX_AGE_SECONDS = 30 * 86_400

RECEIPT = "receipt"
"""The query that asks for the visitor's receipt as a file. So one link fits the page and its frame, which differ in
their cookies."""


_STATUS_BY_REFUSAL: Mapping[ProblemType, tuple[RoomStatus, int]] = {
    QUEUE_FULL: ("full", 503),
    QUEUE_INACTIVE: ("closed", 503),
    QUEUE_ENDED: ("ended", 410),
    RATE_LIMITED: ("crowded", 429),
    NOT_FOUND: ("gone", 404),
}
"""The state and the HTTP status of the page when a visitor cannot get a place."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes of queues."""

    async def jwks() -> Mapping[str, Any]:
        return (await database.transact(release_tokens.RELEASE_SIGNING_KEYS.read_or_create)).jwks()

    def page(address: str, *, framed: bool) -> Route:
        page = RoomPage(database, runner, limits, framed=framed)
        methods = ("GET", "HEAD", "POST")
        return Route(address, Handler(page.access, limits, page.answer, page.refuse, methods=methods))

    return [
        keys_document(JWKS, "list_queue_keys", limits, jwks),
        page("/queues/{queue_id}", framed=False),
        page("/queues/{queue_id}/embed", framed=True),
        *SITE.assets("queues/room.js"),
    ]


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


class RoomPage:
    """The page of a waiting room, by itself or in a frame of the merchant's site."""

    def __init__(self, database: Database, runner: Runner, limits: Limits, *, framed: bool) -> None:
        self._settings = database.resources.settings
        self._database = database
        self._visit, self._join, self._get_receipt = runner[VISIT], runner[JOIN], runner[GET_RECEIPT]
        self._limits = limits
        self._framed = framed
        self.access = Access("framed_waiting_room" if framed else "waiting_room")
        self._joining = Access.of(JOIN, runner)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the status of the visitor with this cookie. A new visitor gets a place first."""
        queue_id = id_of(request.fields["queue_id"])
        secret = request.cookies.get(self._cookie(queue_id))
        if secret is None or not is_cookie_secret(secret):
            return await self._arrival_page(caller, request, queue_id)
        visitor = RoomVisit(queue_id=queue_id, visitor_id=room.visitor_of(secret))
        if request.method == "POST":
            await self._take_place(caller, visitor)
            return redirect(language_of(request).at(request.path), framed=self._framed)
        if RECEIPT in SITE.read_query(request):
            return await self._receipt(caller, request, visitor)
        snapshot: RoomSnapshot = await self._visit(caller, visitor)
        if snapshot.visitor.where == "unknown" and request.method == "GET":
            try:
                await self._take_place(caller, visitor)
            except Problem as problem:
                return self._page(
                    request, *_refusal(problem, snapshot.queue), queue=snapshot.queue, headers=headers_of(problem)
                )
            snapshot = await self._visit(caller, visitor)
        if snapshot.release_token and snapshot.queue.event_id is not None:
            path = release_tokens.with_token(
                released_path(snapshot.queue.event_id, framed=self._framed), snapshot.release_token.token
            )
            return redirect(language_of(request).at(path), framed=self._framed)
        # It is not known who runs the queue of an unproved organizer: its page names the host, and the visitor decides.
        if snapshot.release_token and not self._framed and snapshot.queue.is_confirmed:
            return redirect(snapshot.release_token.redirect_url)
        return self._page(request, view_of(snapshot, self._settings.queue_interval), queue=snapshot.queue)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return self._page(request, *_refusal(problem), headers=headers_of(problem))

    async def _receipt(self, caller: Caller, request: Request, visitor: RoomVisit) -> Reply:
        """The receipt as a file. A visitor who has none goes back to the page."""
        try:
            file: ReceiptFile = await self._get_receipt(caller, visitor)
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return redirect(language_of(request).at(request.path), framed=self._framed)
        return await receipt_file(self._database, file, f"receipt-queue-{visitor.queue_id}.json")

    async def _take_place(self, caller: Caller, visitor: RoomVisit) -> None:
        await admit(self._joining, self._limits, caller)
        await self._join(caller, visitor)

    async def _arrival_page(self, caller: Caller, request: Request, queue_id: int) -> Reply:
        """The page for a browser without a cookie. It sets the cookie."""
        secret = new_cookie_secret()
        snapshot: RoomSnapshot = await self._visit(
            caller, RoomVisit(queue_id=queue_id, visitor_id=room.visitor_of(secret))
        )
        cookie = f"{self._cookie(queue_id)}={secret}; Path=/; Max-Age={COOKIE_MAX_AGE_SECONDS}; HttpOnly"
        if not self._is_secure:
            cookie += "; SameSite=Lax"
        elif self._framed:
            cookie += "; Secure; SameSite=None; Partitioned"
        else:
            cookie += "; Secure; SameSite=Lax"
        view = RoomView("arriving", snapshot.queue.title, event_id=snapshot.queue.event_id, refresh=1)
        return self._page(request, view, queue=snapshot.queue, headers=[(b"set-cookie", cookie.encode())])

    @property
    def _is_secure(self) -> bool:
        return self._settings.base_url.startswith("https://")

    def _cookie(self, queue_id: int) -> str:
        # With this prefix in the name, a browser accepts the cookie only from this host.
        return f"{'__Host-' if self._is_secure else ''}{self.access.name}_{queue_id}"

    def _page(
        self,
        request: Request,
        view: RoomView,
        status: int = 200,
        *,
        queue: RoomRow | None = None,
        headers: Sequence[Header] = (),
    ) -> Reply:
        return show_room(request, view, status, queue=queue, framed=self._framed, headers=headers)


def _refusal(problem: Problem, queue: RoomRow | None = None) -> tuple[RoomView, int]:
    """The page for a visitor without a place, with the reason, and its HTTP status."""
    room_status, http_status = _STATUS_BY_REFUSAL.get(problem.type, ("busy", problem.status))
    refresh = {
        "full": room.refresh_seconds(20),
        "closed": room.refresh_seconds(20),
        "crowded": problem.retry_after,
        "busy": room.refresh_seconds(5),
    }.get(room_status)
    now = datetime.now(UTC)
    event = event_fields(queue) if queue else {}
    return RoomView(room_status, queue.title if queue else "", **event, refresh=refresh, now=now), http_status


MAX_CACHE_BYTES = 4_000_000


PROGRESS_PAGES = cache_bound("Rendered pages of waiting rooms", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


def progress_routes(database: Database, limits: Limits, queues: LookupCache[int, QueueProgress]) -> list[Route]:
    """The route of the progress. `queues`: the cache of it."""
    page = ProgressPage(database.resources.settings.queue_interval, queues)
    return [
        Route("/queues/{queue_id}/progress", Handler(page.access, limits, page.answer, cached_refusals(page.refuse)))
    ]


class ProgressPage:
    """Answers requests for the progress of queues.

    interval    seconds in which `release_rate` visitors are released
    """

    access = Access("waiting_room_progress")

    def __init__(self, interval: int, queues: LookupCache[int, QueueProgress]) -> None:
        self._interval = interval
        self._queues = queues
        self._pages = PageCache(PROGRESS_PAGES, MAX_CACHE_BYTES)

    async def answer(self, _: Caller, request: Request) -> Reply:
        """The progress of the queue in the address. Raises `not_found`."""
        queue = await self._queues.get(id_of(request.fields["queue_id"]))

        async def render() -> CachedPage:
            reply = show_room(request, _progress_view(queue, self._interval), queue=queue, framed=False)
            return cached_page(reply.content.decode(), reply.headers)

        return (await self._pages.get((queue.id, queue.read_at, language_of(request)), render)).reply(request)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        if problem.type is not NOT_FOUND:
            return SITE.refuse(problem, request)
        return show_room(request, RoomView("gone", is_shared=True), 404, framed=False)


def _progress_view(queue: QueueProgress, interval: int) -> RoomView:
    """The view that is the same for all who wait."""
    if queue.is_over:
        return RoomView("ended", queue.title, **event_fields(queue), is_shared=True, serving=queue.serving)
    status = status_of(queue, queue.until_start)
    return RoomView(
        status,
        queue.title,
        queue.description,
        **draw_fields(queue),
        **event_fields(queue),
        is_shared=True,
        progress=1 if status == "waiting" else None,
        serving=queue.serving,
        tickets=queue.serving + queue.queue_length,
        log=log_path(queue),
        seconds_per_visitor=interval / queue.release_rate,
        until_start=queue.until_start,
        starts_at=queue.starts_at,
        ends_at=queue.ends_at,
        paused_at=queue.paused_at,
        now=queue.read_at,
    )
