"""The covers of events as PNG files, `/events/<event_id>/cover-<version>.png`: the preview images of links."""

import asyncio

from cachetools import TTLCache

from holdfast.events.pages.cover import cover_path
from holdfast.events.pages.event.cache import LinkedEvent
from holdfast.events.paths import id_of
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import NOSNIFF, Access, Reply, Request
from holdfast.kit.operations.slots import Slots
from holdfast.kit.postgres.lookup_cache import LookupCache

MAX_CACHED_COVERS = 100
"""Covers have about 20 kB."""

CACHE_TTL_SECONDS = 3600

MAX_WAITING = 20
"""The most requests for covers of one organizer that wait, or from one address. Each takes about 0.3 seconds."""

WAIT_SECONDS = 20
"""The most seconds that a request waits for a cover."""

HEADERS = [(b"cache-control", b"public, max-age=604800, immutable"), NOSNIFF]

COVERS = Bound(
    name="Covers of events that are drawn",
    service="events",
    total="1",
    tenant=f"1, in turns; {MAX_WAITING} wait",
    address=f"1, in turns for one organizer; {MAX_WAITING} wait",
    reserved="-",
    stranger="Each cover of another organizer waits one turn, about 0.3 seconds.",
)
COVERS_OF_ADDRESS = Bound(
    name="Requests for covers that are not drawn yet",
    service="events",
    total="none",
    tenant="none",
    address=f"1; {MAX_WAITING} wait, also of a /48",
    reserved="-",
    stranger=f"The {MAX_CACHED_COVERS} covers that are kept are drawn again, which takes time.",
)


class CoverImage:
    """Answers requests for covers. Each is drawn once; of several, one at a time, in turns of organizers."""

    access = Access("cover")

    def __init__(self, linked_events: LookupCache[int, LinkedEvent]) -> None:
        self._linked_events = linked_events
        # A cover contains a title, which is not kept for long after its event has gone.
        self._drawn: TTLCache[str, bytes] = TTLCache(MAX_CACHED_COVERS, CACHE_TTL_SECONDS)
        # A visitor who asks for covers of many organizers has one turn, too.
        self._of_address = Slots(COVERS_OF_ADDRESS, 1, timeout=WAIT_SECONDS, max_waiting=MAX_WAITING)
        self._of_organizer = Slots(COVERS, 1, timeout=WAIT_SECONDS, max_waiting=MAX_WAITING)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The cover of an event whose organizer has confirmed its address. Raises `not_found`."""
        fields = request.fields
        event = (await self._linked_events.get(id_of(fields["event_id"]))).event
        title = one_line(event.title)
        if not event.is_confirmed or request.path != cover_path(event.id, title):
            raise NOT_FOUND()
        content = self._drawn.get(title) or await self._draw(caller, event.organizer_slug, title)
        return Reply(200, content, HEADERS, b"image/png")

    async def _draw(self, caller: Caller, organizer: str, title: str) -> bytes:
        """Draw a cover in the turn of its organizer. Raises `service_unavailable` if many wait, and `client_gone`."""
        address = caller.owner[1:]
        async with self._of_address.slot_of(address), self._of_organizer.slot_of(("covers", organizer, *address)):
            content = self._drawn.get(title)
            if content is None:
                content = self._drawn[title] = await asyncio.to_thread(_draw, title)
            return content


def _draw(title: str) -> bytes:
    from holdfast.events.pages import cover_drawing  # the service loads Pillow only when a cover is drawn

    return cover_drawing.cover_png(title)
