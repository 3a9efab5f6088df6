"""The progress of a queue: the part of its page that is the same for all who wait.

`/queues/<queue_id>/progress` is the `main` of that page, with names in braces where the page of a visitor has its own
numbers. `room.js` fills them in from the ticket of the visitor. So pages poll an address that caches in front may keep,
and their own address only when it is their turn.
"""

from holdfast.events.paths import id_of
from holdfast.events.queues.pages.room_view import RoomView, draw_fields, event_fields, show_room, status_of
from holdfast.events.queues.room import QueueProgress, log_path
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.answers import cached_refusals
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import CachedPage, PageCache, cached_page
from holdfast.kit.postgres.lookup_cache import LookupCache

MAX_CACHE_BYTES = 4_000_000

PROGRESS_PAGES = cache_bound("Rendered pages of waiting rooms", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


def route(database: Database, limits: Limits, queues: LookupCache[int, QueueProgress]) -> Route:
    """The route of the progress. `queues`: the cache of it."""
    page = ProgressPage(database.resources.settings.queue_interval, queues)
    return Route("/queues/{queue_id}/progress", Handler(page.access, limits, page.answer, cached_refusals(page.refuse)))


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
            reply = show_room(request, _view_of(queue, self._interval), queue=queue, framed=False)
            return cached_page(reply.content.decode(), reply.headers)

        return (await self._pages.get((queue.id, queue.read_at, language_of(request)), render)).reply(request)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        if problem.type is not NOT_FOUND:
            return SITE.refuse(problem, request)
        return show_room(request, RoomView("gone", is_shared=True), 404, framed=False)


def _view_of(queue: QueueProgress, interval: int) -> RoomView:
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
