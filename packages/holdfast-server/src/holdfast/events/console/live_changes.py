"""The streams of console pages: they tell a signed-in organizer which of its events and queues have changed.

    GET /console/stream           events, with their registrations, payments and scans
    GET /console/stream/queues    queues

A page then fetches itself again. A stream ends as soon as its session does.
"""

import asyncio
import contextlib
from collections.abc import Generator, Mapping, Sequence, Set
from typing import TypeAlias

import msgspec
import structlog
from msgspec import Struct

from holdfast.accounts import sessions
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events import operations as events
from holdfast.events.events.model import CHANGE_CHANNEL, DETAILS_CHANNEL
from holdfast.events.queues import operations as queues
from holdfast.events.resources import Database
from holdfast.kit.contract.client import address
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.event_streams import (
    EndOfStream,
    EventStream,
    Feed,
    StreamOwner,
    Streams,
    encode_event,
    encode_retry,
)
from holdfast.kit.http.handler import Reply, Request, require_method
from holdfast.kit.http.index import Route
from holdfast.kit.postgres.announced_changes import AnnouncedChanges

STREAM = f"{HOME}/stream"
QUEUES_STREAM = f"{STREAM}/queues"

QUEUE_POLL_SECONDS = 0.5
"""Seconds between two reads of the queues that are open in a console: their visitors come and go all the time."""

SIGNED_OUT = encode_event(b"{}", name="signed_out")
"""The last event of a stream whose session has ended."""

log = structlog.get_logger()


class ChangeMessage(Struct, omit_defaults=True):
    """The data of an event of the streams.

    changed    what has changed, such as `event 7` or `queue 3`; without it, everything may have changed
    """

    changed: Sequence[str] | None = None


Feeds: TypeAlias = dict[int, Feed[ChangeMessage]]


class LiveChanges:
    """What changes for the organizers who look at the console in this process.

    events    the feeds of the changes of their events, by organizer
    queues    the feeds of the changes of their queues, by organizer
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.events: Feeds = {}
        self.queues: Feeds = {}
        self._queue_versions: dict[int, dict[int, str]] = {}
        self._changes = AnnouncedChanges(
            database, [CHANGE_CHANNEL, DETAILS_CHANNEL], self._is_watched, self._publish_changes
        )

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Publish changes while the block lasts."""
        poll = asyncio.create_task(self._poll_queues(), name="poll of queues")
        try:
            with self._changes.listening(), self._database.listen(sessions.SESSIONS_CHANNEL, self._on_session):
                yield
        finally:
            poll.cancel()

    def _is_watched(self, _: int | None) -> bool:
        return any(feed.has_readers for feed in self.events.values())

    def _on_session(self, _: str) -> None:
        """Let every stream look up its session again."""
        for feed in (*self.events.values(), *self.queues.values()):
            feed.wake()

    async def _publish_changes(self, event_ids: Set[int] | None) -> None:
        _drop_unread(self.events)
        if event_ids is None:
            for feed in self.events.values():
                _publish(feed, ChangeMessage())
        elif event_ids and self.events:
            owners = [*self.events]
            for organizer_id, ids in (
                await self._database.read(lambda r: events.group_by_owner(r, event_ids, owners))
            ).items():
                if feed := self.events.get(organizer_id):
                    _publish(feed, ChangeMessage([f"event {id}" for id in ids]))

    async def _poll_queues(self) -> None:
        while True:
            await asyncio.sleep(QUEUE_POLL_SECONDS)
            _drop_unread(self.queues)
            try:
                await self._tell_queues()
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("queues could not be read; trying again", exc_info=error)

    async def _tell_queues(self) -> None:
        """Read the queues that are open in a console, and publish which have changed."""
        owners = [*self.queues]
        versions = await self._database.read(lambda reader: queues.list_versions(reader, owners)) if owners else {}
        before, self._queue_versions = self._queue_versions, versions
        for organizer_id, now in versions.items():
            feed = self.queues.get(organizer_id)
            if feed is None:
                continue
            if (earlier := before.get(organizer_id)) is None:
                _publish(feed, ChangeMessage())  # it is not known what changed since the page was loaded
            elif changed_ids := {id for id, _ in now.items() ^ earlier.items()}:
                _publish(feed, ChangeMessage([f"queue {id}" for id in sorted(changed_ids)]))


class LiveConsole:
    """Answers requests for the streams of the console."""

    def __init__(self, console: Console, changes: LiveChanges, streams: Streams) -> None:
        self._console = console
        self._changes = changes
        self._streams = streams

    def routes(self) -> list[Route]:
        return [
            self._console.route(STREAM, "stream", self.events),
            self._console.route(QUEUES_STREAM, "queues_stream", self.queues),
        ]

    async def events(self, session: Session, request: Request) -> Reply:
        """Stream which events of the organizer change."""
        return self._stream(session, request, self._changes.events)

    async def queues(self, session: Session, request: Request) -> Reply:
        """Stream which queues of the organizer change."""
        return self._stream(session, request, self._changes.queues)

    def _stream(self, session: Session, request: Request, feeds: Feeds) -> Reply:
        """A stream from now on. Raises `method_not_allowed`, `rate_limited`, and `service_unavailable`."""
        require_method(request, ("GET",))
        tenant = organizer(session).tenant
        owners: Mapping[StreamOwner, object] = {"address": address(request.scope), "tenant": tenant}
        self._streams.require_room(owners)
        feed = feeds.setdefault(tenant, Feed())
        gate, position, start = self._console.signed_in.gate, feed.position, encode_retry()

        async def pending() -> bytes:
            nonlocal position, start
            try:
                current = await gate.find(request)
            except Problem as problem:
                raise EndOfStream from problem  # the browser opens it again
            if current is None or current.account.tenant_id != tenant:
                raise EndOfStream(SIGNED_OUT)
            if feeds.setdefault(tenant, feed) is not feed:
                raise EndOfStream  # the feed was dropped before it had this reader; the browser opens the stream again
            messages = feed.since(position)
            position = feed.position
            chunk, start = start + (b"" if messages == [] else _encoded(messages)), b""
            return chunk

        return EventStream(200, streams=self._streams, name="console", feed=feed, pending=pending, owners=owners)


def _encoded(messages: Sequence[ChangeMessage] | None) -> bytes:
    """All messages as one event. None: some of them are not known any more."""
    names: set[str] = set()
    for message in messages or ():
        if message.changed is None:
            messages = None
            break
        names.update(message.changed)
    message = ChangeMessage(None if messages is None else sorted(names))
    return encode_event(msgspec.json.encode(message), name="changed")


def _publish(feed: Feed[ChangeMessage], message: ChangeMessage) -> None:
    feed.publish(feed.position + 1, message)


def _drop_unread(feeds: Feeds) -> None:
    for organizer_id in [organizer_id for organizer_id, feed in feeds.items() if not feed.has_readers]:
        del feeds[organizer_id]
