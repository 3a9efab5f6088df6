"""The stream of an organizer: it tells that something on its page has changed. Anybody may read it.

GET /organizers/{slug}/stream

The page then fetches itself again. A change of an event that is not public is told only if it changes the page.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from msgspec import Struct
from starlette.routing import BaseRoute, Route

from holdfast.events.events.model import CHANGE_CHANNEL
from holdfast.events.pages import sql
from holdfast.events.pages.organizer import checked_slug
from holdfast.events.pages.organizer_cache import OrganizerCache
from holdfast.events.resources import Database
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.contract.sources import address
from holdfast.kit.http.event_streams import (
    EndOfStream,
    EventStream,
    Feed,
    StreamOwner,
    Streams,
    encode_notice,
    encode_retry,
)
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.postgres.announced_changes import AnnouncedChanges
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.runner import Runner


class WatchedOrganizer(Struct):
    """An organizer whose page is read.

    feed       tells its readers of changes
    version    the version of the page when it was read last; None: there was no such page
    """

    slug: str
    feed: Feed[None]
    version: bytes | None


class LiveOrganizers:
    """The organizers whose pages are read in this process, by id. `pages` has the first page of each."""

    def __init__(self, database: Database, runner: Runner, pages: OrganizerCache) -> None:
        self._database = database
        self._runner = runner
        self._pages = pages
        self._watched: dict[int, WatchedOrganizer] = {}
        self._changes = AnnouncedChanges(database, [CHANGE_CHANNEL], lambda _: bool(self._watched), self._tell)
        self.listening: Callable[[], AbstractContextManager[None]] = self._changes.listening

    def routes(self, limits: Limits, streams: Streams) -> Sequence[BaseRoute]:
        """The route of the streams."""

        async def answer(caller: Caller, request: Request) -> Reply:
            return await self._open(caller, request, streams)

        handler = Handler(Access("organizer_stream"), limits, answer, envelope(Problem.body), methods=("GET",))
        return [Route("/organizers/{slug}/stream", handler)]

    async def _open(self, caller: Caller, request: Request, streams: Streams) -> Reply:
        """Open a stream. Raises `not_found`, `rate_limited`, and `service_unavailable`."""
        owners: Mapping[StreamOwner, object] = {"address": address(request.scope)}
        streams.require_room(owners)
        slug = checked_slug(request)
        organizer = await self._runner.read(caller, lambda reader: sql.find_organizer(reader, slug))
        if organizer is None:
            raise NOT_FOUND(f"No organizer has the slug {slug}.")
        version = await self._find_version(slug)
        watched = self._watched.setdefault(organizer.id, WatchedOrganizer(slug, Feed(), version))
        feed = watched.feed
        position, start = feed.position, encode_retry()

        async def pending() -> bytes:
            nonlocal position, start
            if self._watched.setdefault(organizer.id, watched) is not watched:
                raise EndOfStream  # the feed was dropped before it had this reader; the browser opens the stream again
            chunk = start + (encode_notice("changed", feed) if feed.position > position else b"")
            position, start = feed.position, b""
            return chunk

        return EventStream(200, streams=streams, name="organizer", feed=feed, pending=pending, owners=owners)

    async def _tell(self, event_ids: Set[int] | None) -> None:
        """Publish that events have changed. None: any event may have."""
        self._watched = {id: organizer for id, organizer in self._watched.items() if organizer.feed.has_readers}
        owners = dict.fromkeys(self._watched, False)
        if event_ids is not None and owners:
            owner_ids = [*owners]
            owners = await self._database.read(lambda reader: sql.find_owners(reader, event_ids, owner_ids))
        for id, has_public_event in owners.items():
            if organizer := self._watched.get(id):
                version = await self._find_version(organizer.slug)
                # A page further back in time shows public events that are not on the first one.
                is_changed = version != organizer.version or has_public_event
                organizer.version = version
                if is_changed:
                    organizer.feed.publish(organizer.feed.position + 1, None)

    async def _find_version(self, slug: str) -> bytes | None:
        """The version of the first page of an organizer; None if it has none."""
        try:
            return (await self._pages.get(slug)).version
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return None
