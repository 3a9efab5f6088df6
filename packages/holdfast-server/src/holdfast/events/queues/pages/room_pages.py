"""The pages of waiting rooms, each by itself or in a frame.

A browser gets a secret in a cookie, and a place as soon as it sends the cookie back. So a client without cookies gets
no place. In a frame the cookie is partitioned by the top-level site, since browsers allow no other cookie there.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from holdfast.events.log.signed_answers import receipt_file
from holdfast.events.paths import id_of, released_path
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import release_tokens, room
from holdfast.events.queues.model import RoomRow, RoomVisitor, estimated_wait
from holdfast.events.queues.pages.room_view import RoomStatus, RoomView, draw_fields, event_fields, show_room, status_of
from holdfast.events.queues.room import READ_PROGRESS, RoomSnapshot
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, RATE_LIMITED, Problem, ProblemType
from holdfast.kit.http.cookies import cookie_header
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request, admit, headers_of
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, batched, single
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.security.cookie_secrets import is_cookie_secret, new_cookie_secret
from holdfast_verify.formats.receipts import ReceiptFile

DRAW_REFRESH_SECONDS = 300
"""The wait by which pages choose when to reload before a draw: they change seldom, and then all at once."""

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
"""The status of the room and the HTTP status when a visitor cannot get a place."""


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
    if visitor.status != "waiting":
        return RoomView("ended" if visitor.status == "ended" else "missed", queue.title, **event_fields(queue))
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


VISIT = Operation("visit_waiting_room", None, batched(room.read_room_and_issue_token))
JOIN = Operation("join_waiting_room", None, batched(room.join_from_page), limit="waiting room joins")
GET_RECEIPT = Operation("get_waiting_room_receipt", None, single(room.get_receipt))
OPERATIONS = (VISIT, JOIN, GET_RECEIPT, READ_PROGRESS)
"""The operations of the pages. They have no routes and no tools of their own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes of the pages."""

    def page(address: str, *, framed: bool) -> Route:
        page = RoomPage(database, runner, limits, framed=framed)
        methods = ("GET", "HEAD", "POST")
        return Route(address, Handler(page.access, limits, page.answer, page.refuse, methods=methods))

    return [
        page("/queues/{queue_id}", framed=False),
        page("/queues/{queue_id}/embed", framed=True),
        *SITE.assets("queues/room.js"),
    ]


class RoomPage:
    """The page of a waiting room, by itself or in a frame of the organizer's site."""

    def __init__(self, database: Database, runner: Runner, limits: Limits, *, framed: bool) -> None:
        self._settings = database.resources.settings
        self._database = database
        self._visit, self._join, self._get_receipt = (
            runner.run_of(VISIT),
            runner.run_of(JOIN),
            runner.run_of(GET_RECEIPT),
        )
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
        visitor = RoomVisitor(queue_id=queue_id, visitor_id=room.visitor_of(secret))
        if request.method == "POST":
            await self._take_place(caller, visitor)
            return redirect(language_of(request).at(request.path), framed=self._framed)
        if RECEIPT in SITE.read_query(request):
            return await self._receipt(caller, request, visitor)
        snapshot: RoomSnapshot = await self._visit(caller, visitor)
        if snapshot.visitor.status == "unknown" and request.method == "GET":
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

    async def _receipt(self, caller: Caller, request: Request, visitor: RoomVisitor) -> Reply:
        """The receipt as a file. A visitor who has none goes back to the page."""
        try:
            file: ReceiptFile = await self._get_receipt(caller, visitor)
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return redirect(language_of(request).at(request.path), framed=self._framed)
        return await receipt_file(self._database, file, f"receipt-queue-{visitor.queue_id}.json")

    async def _take_place(self, caller: Caller, visitor: RoomVisitor) -> None:
        await admit(self._joining, self._limits, caller)
        await self._join(caller, visitor)

    async def _arrival_page(self, caller: Caller, request: Request, queue_id: int) -> Reply:
        """The page for a browser without a cookie. It sets the cookie."""
        secret = new_cookie_secret()
        snapshot: RoomSnapshot = await self._visit(
            caller, RoomVisitor(queue_id=queue_id, visitor_id=room.visitor_of(secret))
        )
        cookie = cookie_header(
            self._cookie(queue_id),
            secret,
            seconds=COOKIE_MAX_AGE_SECONDS,
            is_secure=self._is_secure,
            is_framed=self._framed,
        )
        view = RoomView("arriving", snapshot.queue.title, event_id=snapshot.queue.event_id, refresh=1)
        return self._page(request, view, queue=snapshot.queue, headers=[cookie])

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
