"""The covers of events as PNG files, `/events/<event_id>/cover-<version>.png`: the preview images of links."""

import asyncio

from cachetools import TTLCache

from holdfast.events.markdown import one_line
from holdfast.events.pages.cover import cover_path
from holdfast.events.pages.event_cache import LinkedEvent
from holdfast.events.paths import id_of
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE
from holdfast.kit.http.handler import NOSNIFF, Access, Reply, Request
from holdfast.kit.postgres.lookup_cache import LookupCache

MAX_CACHED_COVERS = 100
"""Covers have about 20 kB."""

CACHE_TTL_SECONDS = 3600

MAX_WAITING = 20
"""The most requests that wait for a cover. Each takes about 0.3 seconds to draw."""

HEADERS = [(b"cache-control", b"public, max-age=604800, immutable"), NOSNIFF]


class CoverImage:
    """Answers requests for covers. Each is drawn once; of several, one at a time."""

    access = Access("cover")

    def __init__(self, linked_events: LookupCache[int, LinkedEvent]) -> None:
        self._linked_events = linked_events
        # A cover contains a title, which is not kept for long after its event has gone.
        self._drawn: TTLCache[str, bytes] = TTLCache(MAX_CACHED_COVERS, CACHE_TTL_SECONDS)
        self._drawing = asyncio.Lock()
        self._waiting = 0

    async def answer(self, _: Caller, request: Request) -> Reply:
        """The cover of an event whose organizer has confirmed its address. Raises `not_found`."""
        path_params = request.scope["path_params"]
        event = (await self._linked_events.get(id_of(path_params["event_id"]))).event
        title = one_line(event.title)
        if not event.is_confirmed or request.path != cover_path(event.id, title):
            raise NOT_FOUND()
        content = self._drawn.get(title) or await self._draw(title)
        return Reply(200, content, HEADERS, b"image/png")

    async def _draw(self, title: str) -> bytes:
        """Draw a cover after those that were requested before. Raises `service_unavailable` if many wait."""
        if self._waiting >= MAX_WAITING:
            raise SERVICE_UNAVAILABLE("Many covers are being drawn right now.", retry_after=5)
        self._waiting += 1
        try:
            async with self._drawing:
                content = self._drawn.get(title)
                if content is None:
                    content = self._drawn[title] = await asyncio.to_thread(_draw, title)
                return content
        finally:
            self._waiting -= 1


def _draw(title: str) -> bytes:
    from holdfast.events.pages.cover_image import cover_png

    return cover_png(title)
