"""The stream of an event: the numbers at once, and then each change. Anybody may read it.

GET /events/{event_id}/stream          for its page
GET /events/{event_id}/embed/stream    for its form in a frame
"""

from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute, Route

from holdfast.events.pages.live_event import LiveEvents
from holdfast.events.paths import id_of
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.contract.sources import address
from holdfast.kit.http.event_streams import EndOfStream, EventStream, StreamOwner, Streams, encode_notice, encode_retry
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.pages.language import language_of
from holdfast.kit.running.rate_limits import Limits


def routes(limits: Limits, live_events: LiveEvents, streams: Streams) -> Sequence[BaseRoute]:
    def route(path: str, name: str, *, framed: bool) -> Route:
        async def answer(_: Caller, request: Request) -> Reply:
            return await open_stream(request, live_events, streams, framed=framed)

        return Route(path, Handler(Access(name), limits, answer, envelope(Problem.body), methods=("GET",)))

    return [
        route("/events/{event_id}/stream", "event_stream", framed=False),
        route("/events/{event_id}/embed/stream", "framed_event_stream", framed=True),
    ]


async def open_stream(request: Request, live_events: LiveEvents, streams: Streams, *, framed: bool) -> Reply:
    """Open a stream. Raises `not_found`, `rate_limited`, and `service_unavailable`."""
    owners: Mapping[StreamOwner, object] = {"address": address(request.scope)}
    event_id = id_of(request.scope["path_params"]["event_id"])
    event = await live_events.watch(event_id, language_of(request), framed=framed)
    position, start = -1, encode_retry()

    async def pending() -> bytes:
        nonlocal position, start
        if event.numbers is None:
            # It is not public any more. The page fetches itself, and is not found.
            raise EndOfStream(start + (b"" if framed else encode_notice("changed", event.feed)))
        messages = event.feed.since(position)
        position = event.feed.position
        chunk = start + (event.snapshot() if messages is None else b"".join(messages))
        start = b""
        if event.numbers.is_closed:
            # Nothing will change any more.
            raise EndOfStream(chunk + encode_notice("end", event.feed))
        return chunk

    streams.require_room(owners)
    return EventStream(200, streams=streams, name="event", feed=event.feed, pending=pending, owners=owners)
