"""Server-sent events: one feed per topic, with any number of readers. No reader can delay another.

A `Feed` keeps its latest messages under rising positions. A reader stores only the last position it has seen. So a slow
reader uses no memory for waiting messages, and a reader that reconnects can continue from its position.
"""

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from prometheus_client import Gauge
from starlette.types import Receive, Send

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import WIDE_CONNECTIONS, wide_network
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE
from holdfast.kit.http.address_holdings import AddressHoldings
from holdfast.kit.http.handler import NOSNIFF, Reply, Request

M = TypeVar("M")

HEARTBEAT_SECONDS = 15.0
"""Seconds without data after which a comment is sent, so that proxies do not close the stream as idle."""

RETRY_AFTER_SECONDS = 30
"""Seconds after which a client may retry when a stream was refused because there are too many."""

DEFAULT_FEED_CAPACITY = 256
"""The capacity of a feed for slow readers: the sum of the weights of its messages, by default 1 each."""

MIN_RETRY_MS, MAX_RETRY_MS = 2_000, 8_000
"""The milliseconds after which a client opens a stream again that has ended, each client after others.

If a process ends, ten thousand clients would come at the same moment, and all else would wait for seconds.
"""

MAX_FETCHES_PER_SECOND = 200
"""How many readers of a feed may send a request in a second, because of a message that makes all of them send one."""

OPEN = Gauge("holdfast_streams_open", "Event streams open.", ["stream"], multiprocess_mode="livesum")

HEADERS = [
    NOSNIFF,
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

StreamOwner: TypeAlias = Literal["address", "key", "tenant"]
OWNER_TEXTS: Mapping[StreamOwner, str] = {
    "address": "from one address",
    "key": "with one key",
    "tenant": "of one tenant",
}
"""The texts of the owners that streams are counted by."""

Pending = Callable[[], Awaitable[bytes]]


class Feed(Generic[M]):
    """The latest messages of one topic.

    position    the position of the newest message; positions only rise
    grain       positions that are multiples of it are the same in all processes; those between are of one process
    has_ended   whether no more messages will come: then the streams of its readers end
    """

    def __init__(self, position: int = 0, *, room: int = DEFAULT_FEED_CAPACITY, grain: int = 1) -> None:
        self.position = position
        self.has_ended = False
        self._grain = grain
        self._start = position
        self._room = room
        self._messages: deque[tuple[int, M, int]] = deque()
        self._wakes: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()

    def publish(self, position: int, message: M, weight: int = 1) -> None:
        """Add a message and wake every reader. A message at a position not above the latest is ignored."""
        if position <= self.position:
            return
        self._messages.append((position, message, weight))
        self.position = position
        self._room -= weight
        while self._room < 0:
            self._start, _, forgotten = self._messages.popleft()
            self._room += forgotten
        self.wake()

    def restart(self, position: int) -> None:
        """Forget all messages and continue at a position. Readers then learn that they have missed messages."""
        self._room += sum(weight for _, _, weight in self._messages)
        self._messages.clear()
        self.position = self._start = position
        self.wake()

    def end(self) -> None:
        """End the streams of all readers."""
        self.has_ended = True
        self.wake()

    def since(self, position: int) -> list[M] | None:
        """The messages after a position, oldest first. None if some were dropped, or the position is too high."""
        if not self._start <= position <= self.position:
            return None
        newest_first = itertools.takewhile(lambda entry: entry[0] > position, reversed(self._messages))
        return [message for _, message, _ in newest_first][::-1]

    def last_known_position(self, position: int) -> int:
        """The last position, up to this one, that every process knows, so that a reader can continue at any process."""
        return position - position % self._grain

    def wake(self) -> None:
        """Make the streams of all readers call `pending` again."""
        for wake in tuple(self._wakes.values()):
            wake()

    @property
    def has_readers(self) -> bool:
        return bool(self._wakes)

    @property
    def spread_seconds(self) -> float | None:
        """Seconds in which all readers send a request, each at a random moment. None if they are few: at once."""
        readers = len(self._wakes)
        return readers / MAX_FETCHES_PER_SECOND if readers > MAX_FETCHES_PER_SECOND else None

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], None]) -> Generator[None]:
        """Call `wake` on every message while the block lasts."""
        number = next(self._numbers)
        self._wakes[number] = wake
        try:
            yield
        finally:
            del self._wakes[number]


class Notice(Struct, omit_defaults=True):
    """The data of a message after which each reader sends a request.

    at        when it was published, in milliseconds since 1970. A page that fetches itself names it in its address, so
              that no cache in front of the service answers with an older page
    spread    see `Feed.spread_seconds`
    """

    at: int
    spread: float | None = None


def retry_ms() -> int:
    """The milliseconds after which one client opens its stream again."""
    return random.randint(MIN_RETRY_MS, MAX_RETRY_MS)  # noqa: S311 - it spreads clients, and keeps nothing secret


def encode_retry() -> bytes:
    """What tells a browser when to open its stream again."""
    return b"retry: %d\n\n" % retry_ms()


class EndOfStream(Exception):
    """Raised by `pending` to end its stream. `last` is sent before the stream closes."""

    def __init__(self, last: bytes = b"") -> None:
        super().__init__()
        self.last = last


class OpenStream:
    """A stream that is counted for its owners."""

    def __init__(self, owners: Mapping[StreamOwner, object]) -> None:
        self.owners = owners
        self.was_ended = False
        """Whether it has to end, so that another address can open one."""
        self.wake: Callable[[], None] = lambda: None

    @property
    def source(self) -> str | None:
        source = self.owners.get("address")
        return source if isinstance(source, str) else None


class Streams:
    """The open event streams of a process. All of them end when a signal stops the process.

    bound                     what is limited, for the page of all bounds
    max_streams               the maximum number of open streams of one owner
    max_streams_in_process    the maximum number of open streams of all owners together; None: no maximum

    When a tenant or the process has the maximum, the address that has the most of these streams loses one to an address
    that has fewer.
    """

    def __init__(
        self,
        bound: Bound,
        max_streams: Mapping[StreamOwner, int] | None = None,
        max_streams_in_process: int | None = None,
    ) -> None:
        self.bound = bound
        self._max_streams = max_streams or {}
        self._max_streams_in_process = max_streams_in_process
        self._open: Counter[tuple[StreamOwner, object]] = Counter()
        self._streams: set[OpenStream] = set()
        self._holdings = AddressHoldings[OpenStream]()
        """The streams of the process by address."""
        self._tenants: dict[object, AddressHoldings[OpenStream]] = {}
        """The streams of each tenant, by address."""
        self.closing = False
        self.wakes: set[Callable[[], None]] = set()

    def require_room(self, owners: Mapping[StreamOwner, object]) -> None:
        """Raise `rate_limited` if one of the owners already has the maximum number of streams.

        Raises `service_unavailable` if this process has.
        """
        full: list[tuple[StreamOwner, object, int]] = [
            (owner, name, max_streams)
            for owner, name, max_streams in self._shares(owners)
            if self._open[owner, name] >= max_streams
        ]
        source = OpenStream(owners).source
        for owner, name, max_streams in full:
            if len(full) == 1 and owner == "tenant" and source and self._make_room(self._tenants.get(name), source):
                continue
            raise RATE_LIMITED(
                f"At most {max_streams} streams {OWNER_TEXTS[owner]} may be open.",
                hint="Close one of them first: each of them tells every change.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        if (
            self._max_streams_in_process is not None
            and len(self._streams) >= self._max_streams_in_process
            and not (source and self._make_room(self._holdings, source))
        ):
            raise SERVICE_UNAVAILABLE("Too many streams are open.", retry_after=RETRY_AFTER_SECONDS)

    @contextlib.contextmanager
    def counting(self, owners: Mapping[StreamOwner, object]) -> Generator[OpenStream]:
        """Count a stream for its owners while the block lasts."""
        stream = OpenStream(owners)
        self._streams.add(stream)
        for owner, name, _ in self._shares(owners):
            self._open[owner, name] += 1
        for holdings in self._holdings_of(stream):
            holdings.add(str(stream.source), stream)
        try:
            yield stream
        finally:
            self._stop_counting(stream)

    def _make_room(self, holdings: AddressHoldings[OpenStream] | None, source: str) -> bool:
        """End a stream of the address that has the most. Returns whether there was one."""
        excess = holdings.find_excess(source) if holdings else None
        if excess is None:
            return False
        self._stop_counting(excess)
        excess.was_ended = True
        excess.wake()
        return True

    def _stop_counting(self, stream: OpenStream) -> None:
        if stream not in self._streams:
            return  # it has given way
        self._streams.discard(stream)
        for holdings in self._holdings_of(stream):
            holdings.remove(str(stream.source), stream)
        tenant = stream.owners.get("tenant")
        if tenant in self._tenants and not self._tenants[tenant]:
            del self._tenants[tenant]
        for owner, name, _ in self._shares(stream.owners):
            self._open[owner, name] -= 1
            if not self._open[owner, name]:
                del self._open[owner, name]

    def _holdings_of(self, stream: OpenStream) -> Iterator[AddressHoldings[OpenStream]]:
        if stream.source:
            yield self._holdings
            if tenant := stream.owners.get("tenant"):
                yield self._tenants.setdefault(tenant, AddressHoldings())

    def _shares(self, owners: Mapping[StreamOwner, object]) -> Iterator[tuple[StreamOwner, object, int]]:
        """What a stream is counted for, with the maximum of each. An address counts with the network that it is in."""
        for owner, max_streams in self._max_streams.items():
            if owner in owners:
                name = owners[owner]
                yield owner, name, max_streams
                if isinstance(name, str) and (wide := wide_network(name)):
                    yield owner, wide, WIDE_CONNECTIONS * max_streams

    def close(self) -> None:
        """End every stream, each with its last event."""
        self.closing = True
        self.wake()

    def wake(self) -> None:
        """Make every stream call `pending` again: there may be events to send, or the stream may have to end."""
        for wake in tuple(self.wakes):
            wake()


class EventStream(Reply, kw_only=True):
    """A stream as the answer to a request. It lasts until the client disconnects or this process stops.

    owners     the owners that the stream is counted for; `Streams.require_room` was called for them just before
    pending    `() -> bytes` returns the bytes to send now, possibly none; it raises `EndOfStream` to close the stream
    last       the bytes that are sent when this process stops
    """

    streams: Streams
    name: str
    feed: Feed[Any]
    pending: Pending
    last: bytes = b""
    owners: Mapping[StreamOwner, object] = {}

    async def send(self, request: Request) -> None:
        with self.streams.counting(self.owners) as stream:
            await self._flow(request, stream)

    async def _flow(self, request: Request, stream: OpenStream) -> None:
        wake_signal = asyncio.Event()
        stream.wake = wake_signal.set
        await request.send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *self.headers]})
        gone = asyncio.create_task(_wait_for_disconnect(request.receive))
        gone.add_done_callback(lambda _: wake_signal.set())
        self.streams.wakes.add(wake_signal.set)
        OPEN.labels(self.name).inc()
        last = b""
        try:
            with self.feed.waking(wake_signal.set):
                while not gone.done():
                    wake_signal.clear()
                    if self.streams.closing or self.feed.has_ended or stream.was_ended:
                        last = self.last
                        break
                    if chunk := await self.pending():
                        await _send(request.send, chunk)
                    elif not await _wait_for_signal(HEARTBEAT_SECONDS, wake_signal):
                        await _send(request.send, b":\n\n")
        except EndOfStream as end:
            last = end.last
        finally:
            OPEN.labels(self.name).dec()
            self.streams.wakes.discard(wake_signal.set)
            gone.cancel()
        await request.send({"type": "http.response.body", "body": last})


def encode_event(data: bytes, *, id: str | None = None, name: str | None = None) -> bytes:
    """One server-sent event. `data` is a single line."""
    head = b"".join(
        [b"event: %s\n" % name.encode() if name else b"", b"id: %s\n" % id.encode() if id is not None else b""]
    )
    return b"%sdata: %s\n\n" % (head, data)


def encode_notice(name: str, feed: Feed[Any]) -> bytes:
    """A message after which each reader of a feed sends a request."""
    return encode_event(msgspec.json.encode(Notice(time.time_ns() // 1_000_000, feed.spread_seconds)), name=name)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_for_signal(seconds: float, wake_signal: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake_signal.wait()
    return wake_signal.is_set()


async def _send(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})
