"""What queues serve beside the table: the keys by which anybody can verify release tokens, and the rooms to wait in.

A browser is given a secret to keep in a cookie, and gets a place once the cookie has come back: what keeps no cookies
takes nobody's place. In a frame the cookie belongs to the site around it, since browsers keep no other there.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.events.pages import site
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import passes, room
from holdfast.events.queues.model import QueueRow, estimated_wait
from holdfast.events.queues.room import Rooms, Seen
from holdfast.events.settings import Database, Settings
from holdfast.kit.limits import Limits
from holdfast.kit.metrics import REQUEST_SECONDS
from holdfast.kit.problems import NOT_FOUND, RATE_LIMITED, Problem
from holdfast.kit.rest import address, answered, unexpected
from holdfast.kit.signing import PUBLISHED

JWKS = "/.well-known/queue-jwks.json"
COOKIE_SECONDS = 30 * 86_400

_REFUSED = {
    QUEUE_FULL: ("full", 503),
    QUEUE_INACTIVE: ("closed", 503),
    QUEUE_ENDED: ("ended", 410),
    RATE_LIMITED: ("crowded", 429),
    NOT_FOUND: ("gone", 404),
}
"""What a page shows, and its status, where somebody cannot be given a place."""


def routes(database: Database, settings: Settings, limits: Limits) -> list[BaseRoute]:
    """The routes of queues."""
    public = {"Cache-Control": f"public, max-age={PUBLISHED}", "Access-Control-Allow-Origin": "*"}
    rooms = Rooms(database)

    async def jwks(_: Request) -> Response:
        keys = await database.transact(passes.KEYS.read)
        return JSONResponse(keys.published(), headers=public)

    return [
        Route(JWKS, jwks),
        Route("/queues/{queue_id}", Page(rooms, settings, limits, framed=False).answer, methods=["GET", "POST"]),
        Route("/queues/{queue_id}/embed", Page(rooms, settings, limits, framed=True).answer, methods=["GET", "POST"]),
        *site.assets("queues/room.js"),
    ]


class Shown(NamedTuple):
    """What the template is given. `refresh` is after how many seconds to look again, if at all."""

    state: str
    title: str = "Waiting room"
    description: str | None = None
    refresh: int | None = None
    position: int = 0
    behind: int = 0
    wait: int = 0
    wait_in_words: str = ""
    progress: int = 0
    too_late: bool = False
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    paused_at: datetime | None = None
    now: datetime | None = None
    enter: str = ""
    token: str = ""
    origin: str = ""
    expires_at: datetime | None = None


class Page:
    """The page of a waiting room, by itself or in a frame of the merchant's site."""

    def __init__(self, rooms: Rooms, settings: Settings, limits: Limits, *, framed: bool) -> None:
        self._rooms = rooms
        self._settings = settings
        self._limits = limits
        self._framed = framed
        self._name = "framed_waiting_room" if framed else "waiting_room"
        self._observe = REQUEST_SECONDS.labels(self._name).observe

    async def answer(self, request: Request) -> Response:
        """Show where the visitor stands who keeps the cookie; take them in first, if they are new."""
        started = time.perf_counter()
        try:
            response = await self._answer(request)
        except Exception as error:
            response = self._page(*_refusal(error if isinstance(error, Problem) else unexpected(error, self._name)))
        self._observe(time.perf_counter() - started)
        answered(self._name, response.status_code).inc()
        return response

    async def _answer(self, request: Request) -> Response:
        queue_id = _number(request.path_params["queue_id"])
        secret = request.cookies.get(self._cookie(queue_id))
        if secret is None or not room.is_secret(secret):
            return await self._arriving(queue_id)
        visitor = room.visitor_of(secret)
        if request.method == "POST":
            await self._join(request, queue_id, visitor)
            return Response(None, 303, {**site.secured(framed=self._framed), "Location": request.url.path})
        seen = await self._rooms.look(queue_id, visitor)
        if seen.standing.where == "unknown" and request.method == "GET":
            try:
                await self._join(request, queue_id, visitor)
            except Problem as problem:
                return self._page(*_refusal(problem, seen.queue))
            seen = await self._rooms.look(queue_id, visitor)
        if seen.its_pass and not self._framed:
            headers = {**site.secured(), "Location": seen.its_pass.redirect_url}
            return Response(None, 303, headers)
        return self._page(_shown(seen, self._settings.queue_interval))

    async def _join(self, request: Request, queue_id: int, visitor: str) -> None:
        await self._limits.hit("waiting room joins", address(request.scope))
        await self._rooms.join(queue_id, visitor)

    async def _arriving(self, queue_id: int) -> Response:
        """The page of somebody whom we do not know yet, with the cookie by which we will."""
        secret = room.fresh_secret()
        queue = (await self._rooms.look(queue_id, room.visitor_of(secret))).queue
        cookie = f"{self._cookie(queue_id)}={secret}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly"
        if not self._is_secure:
            cookie += "; SameSite=Lax"
        elif self._framed:
            cookie += "; Secure; SameSite=None; Partitioned"
        else:
            cookie += "; Secure; SameSite=Lax"
        return self._page(Shown("arriving", queue.title, refresh=1), headers={"Set-Cookie": cookie})

    @property
    def _is_secure(self) -> bool:
        return self._settings.base_url.startswith("https://")

    def _cookie(self, queue_id: int) -> str:
        # A browser takes a name with this prefix from nobody but this very host.
        return f"{'__Host-' if self._is_secure else ''}{self._name}_{queue_id}"

    def _page(self, shown: Shown, status: int = 200, *, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
        return site.page("queues/room.html", status, framed=self._framed, headers=headers, room=shown)


def _number(text: str) -> int:
    """The id in an address. Raises `not_found`."""
    if text.isascii() and text.isdigit() and len(text) < 19 and text[0] != "0":
        return int(text)
    raise NOT_FOUND()


def _refusal(problem: Problem, queue: QueueRow | None = None) -> tuple[Shown, int]:
    """The page that tells somebody without a place what speaks against one, and its status."""
    state, status = _REFUSED.get(problem.kind, ("busy", problem.status))
    refresh = {
        "full": room.seconds_to_look_again(20),
        "closed": room.seconds_to_look_again(20),
        "crowded": problem.retry_after,
        "busy": room.seconds_to_look_again(5),
    }.get(state)
    now = datetime.now(UTC)
    return Shown(state, queue.title if queue else "Waiting room", refresh=refresh, now=now), status


def _shown(seen: Seen, interval: int) -> Shown:
    """The page of somebody who has a place, or had one."""
    queue, standing = seen.queue, seen.standing
    if seen.its_pass:
        return Shown(
            "released",
            queue.title,
            enter=seen.its_pass.redirect_url,
            token=seen.its_pass.token,
            origin=passes.origin(queue.target_url),
            expires_at=seen.its_pass.expires_at,
        )
    if standing.where != "waiting":
        return Shown("ended" if standing.where == "ended" else "missed", queue.title)
    wait = estimated_wait(standing.position, standing.release_rate, interval, standing.until_start)
    waited = standing.since_joined or 0
    return Shown(
        "paused" if not queue.active else "before" if standing.until_start > 0 else "waiting",
        queue.title,
        queue.description,
        refresh=room.seconds_to_look_again(wait if queue.active else max(wait, 30)),
        position=standing.position,
        behind=max(0, queue.queue_length - standing.position),
        wait=wait,
        wait_in_words=room.in_words(wait),
        progress=min(99, 100 * waited // max(1, waited + wait)),
        too_late=queue.ends_at is not None and queue.ends_at < seen.now + timedelta(seconds=wait),
        starts_at=queue.starts_at,
        ends_at=queue.ends_at,
        paused_at=queue.paused_at,
        now=seen.now,
    )
