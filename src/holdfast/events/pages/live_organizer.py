"""The stream of an organizer: it tells that something on its page has changed. Anybody may read it.

GET /organizers/{slug}/stream

The page then fetches itself again.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from starlette.routing import BaseRoute, Route

from holdfast.events.events.model import CHANGE_CHANNEL
from holdfast.events.pages import sql
from holdfast.events.pages.organizer import checked_slug
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


class LiveOrganizers:
    """The organizers whose pages are read in this process: a feed for each, by id."""

    def __init__(self, database: Database, runner: Runner) -> None:
        self._database = database
        self._runner = runner
        self._feeds: dict[int, Feed[None]] = {}
        self._changes = AnnouncedChanges(database, [CHANGE_CHANNEL], lambda _: bool(self._feeds), self._tell)
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
        feed = self._feeds.setdefault(organizer.id, Feed())
        position, start = feed.position, encode_retry()

        async def pending() -> bytes:
            nonlocal position, start
            if self._feeds.setdefault(organizer.id, feed) is not feed:
                raise EndOfStream  # the feed was dropped before it had this reader; the browser opens the stream again
            chunk = start + (encode_notice("changed", feed) if feed.position > position else b"")
            position, start = feed.position, b""
            return chunk

        return EventStream(200, streams=streams, name="organizer", feed=feed, pending=pending, owners=owners)

    async def _tell(self, event_ids: Set[int] | None) -> None:
        """Publish that events have changed. None: any event may have."""
        self._feeds = {id: feed for id, feed in self._feeds.items() if feed.has_readers}
        ids: Set[int] = self._feeds.keys()
        if event_ids is not None and ids:
            owner_ids = [*ids]
            ids = await self._database.read(lambda reader: sql.find_owners(reader, event_ids, owner_ids))
        for id in ids:
            if feed := self._feeds.get(id):
                feed.publish(feed.position + 1, None)
