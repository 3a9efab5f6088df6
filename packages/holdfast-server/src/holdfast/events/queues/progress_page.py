"""The part of the page of a waiting room that is the same for all who wait: `/queues/<queue_id>/progress`.

It is the `main` of the page, with names in braces where the page of a visitor has its own numbers. `room.js` fills them
in from the ticket of the visitor. So pages poll an address that caches in front may keep, and their own address only
when it is their turn.
"""

from starlette.routing import BaseRoute, Route

from holdfast.events.paths import id_of
from holdfast.events.queues.progress import QueueProgress
from holdfast.events.queues.room import log_path
from holdfast.events.queues.room_view import RoomView, draw_fields, state_of
from holdfast.events.queues.routes import show_room
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.edge import kept_refusals
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import CachedPage, PageCache, cached_page
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.running.rate_limits import Limits

MAX_CACHE_BYTES = 4_000_000


PROGRESS_PAGES = cache_bound(
    "Rendered pages of waiting rooms", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB in a process"
)


def routes(database: Database, limits: Limits, queues: LookupCache[int, QueueProgress]) -> list[BaseRoute]:
    """The route of the progress. `queues`: the cache of it."""
    page = ProgressPage(database.resources.settings.queue_interval, queues)
    return [Route("/queues/{queue_id}/progress", Handler(page.access, limits, page.answer, kept_refusals(page.refuse)))]


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
        queue = await self._queues.get(id_of(request.scope["path_params"]["queue_id"]))

        async def render() -> CachedPage:
            reply = show_room(request, _view_of(queue, self._interval), framed=False, is_confirmed=queue.is_confirmed)
            return cached_page(reply.content.decode(), reply.headers)

        return (await self._pages.get((queue.id, queue.read_at, language_of(request)), render)).reply(request)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        if problem.type is not NOT_FOUND:
            return SITE.refuse(problem, request)
        return show_room(request, RoomView("gone", is_shared=True), 404, framed=False)


def _view_of(queue: QueueProgress, interval: int) -> RoomView:
    """The view for anybody who waits."""
    if queue.is_over:
        return RoomView("ended", queue.title, is_shared=True, serving=queue.serving)
    return RoomView(
        state_of(queue, queue.until_start),
        queue.title,
        queue.description,
        **draw_fields(queue),
        is_shared=True,
        progress=1 if queue.active else None,
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
