"""The stream of the console, `GET /console/stream`: it tells a merchant what has changed of the shop.

A page then fetches itself again. Its events are named `changed`; their data has the names of what has changed, such as
`pool 7`, and `sync` for the import and the levels, or no names if everything may have changed. A stream ends as soon as
its session does.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.cache import STATUS, AvailabilityCache
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.kit.contract.client import address
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.event_streams import EndOfStream, EventStream, StreamOwner, Streams, encode_event, encode_retry
from holdfast.kit.http.handler import Reply, Request, require_method
from holdfast.kit.http.index import Route
from holdfast.kit.mcp import Change

STREAM = f"{HOME}/stream"

SIGNED_OUT = encode_event(b"{}", name="signed_out")
"""The last event of a stream whose session has ended."""

_POOL = re.compile("pool://([0-9]+)")


class ChangeMessage(Struct, omit_defaults=True):
    """The data of an event. `changed`: what has changed, such as `pool 7`; without it, everything may have changed."""

    changed: Sequence[str] | None = None


class LiveConsole:
    """Answers requests for the stream of the console."""

    def __init__(self, console: Console, cache: AvailabilityCache, streams: Streams) -> None:
        self._console = console
        self._cache = cache
        self._streams = streams

    def routes(self) -> list[Route]:
        return [self._console.route(STREAM, "stream", self.changes)]

    async def changes(self, session: Session, request: Request) -> Reply:
        """Stream what changes from now on. Raises `method_not_allowed`, and `rate_limited`."""
        require_method(request, ("GET",))
        caller = merchant(session)
        owners: Mapping[StreamOwner, object] = {"address": address(request.scope), "tenant": caller.tenant}
        self._streams.require_room(owners)
        feed = await self._cache.changes(caller)
        gate, position, begin = self._console.signed_in.gate, feed.position, encode_retry()

        async def pending() -> bytes:
            nonlocal position, begin
            try:
                current = await gate.find(request)
            except Problem as problem:
                raise EndOfStream from problem  # the browser opens it again
            if current is None or current.account.tenant_id != caller.tenant:
                raise EndOfStream(SIGNED_OUT)
            messages = feed.since(position)
            position = feed.position
            chunk, begin = begin + _encoded(messages), b""
            return chunk

        return EventStream(200, streams=self._streams, name="console", feed=feed, pending=pending, owners=owners)


def _encoded(messages: Sequence[Change] | None) -> bytes:
    """All messages as one event; no bytes if nothing is to be told. None: some of them are not known."""
    if messages is None:
        return encode_event(msgspec.json.encode(ChangeMessage()), name="changed")
    uris = {uri for message in messages for uri in message.uris}
    pools = sorted(int(match[1]) for uri in uris if (match := _POOL.fullmatch(uri)))
    changed_names = [*(f"pool {id}" for id in pools), *(["sync"] if STATUS in uris else [])]
    return encode_event(msgspec.json.encode(ChangeMessage(changed_names)), name="changed") if changed_names else b""
