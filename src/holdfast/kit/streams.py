"""Server-sent events: one feed a topic, any number of readers, none of whom can hold up another.

A `Feed` keeps its latest messages under rising positions. A reader holds nothing but the position it has seen, so one
that is slow costs no memory, and one that comes back can go on where it was.
"""

import asyncio
import contextlib
import itertools
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import FrameType
from typing import Any, Generic, TypeVar

from prometheus_client import Gauge
from starlette.types import Receive, Send

M = TypeVar("M")

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent, so that nobody between takes the stream for dead."""

ROOM = 256
"""How much a feed remembers for readers that are behind: messages, unless each is given a weight."""

OPEN = Gauge("holdfast_streams_open", "Event streams open.", ["stream"], multiprocess_mode="livesum")

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Pending = Callable[[], Awaitable[bytes]]


class Feed(Generic[M]):
    """The latest messages of one topic.

    position    of the newest message; positions only rise
    """

    def __init__(self, position: int = 0, *, room: int = ROOM) -> None:
        self.position = position
        self._start = position
        self._room = room
        self._messages: deque[tuple[int, M, int]] = deque()
        self._wakes: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()

    def publish(self, position: int, message: M, weight: int = 1) -> None:
        """Add a message and wake every reader. A position already passed is a message already told."""
        if position <= self.position:
            return
        self._messages.append((position, message, weight))
        self.position = position
        self._room -= weight
        while self._room < 0:
            self._start, _, forgotten = self._messages.popleft()
            self._room += forgotten
        self._wake()

    def restart(self, position: int) -> None:
        """Begin anew at a position. Readers learn that they have missed something."""
        self._room += sum(weight for _, _, weight in self._messages)
        self._messages.clear()
        self.position = self._start = position
        self._wake()

    def since(self, position: int) -> list[M] | None:
        """The messages after a position, oldest first; None when some of them are forgotten, or it lies ahead."""
        if not self._start <= position <= self.position:
            return None
        newest_first = itertools.takewhile(lambda entry: entry[0] > position, reversed(self._messages))
        return [message for _, message, _ in newest_first][::-1]

    def _wake(self) -> None:
        for wake in tuple(self._wakes.values()):
            wake()

    @property
    def is_heard(self) -> bool:
        return bool(self._wakes)

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], None]) -> Generator[None]:
        """Call `wake` on every message while the block lasts."""
        number = next(self._numbers)
        self._wakes[number] = wake
        try:
            yield
        finally:
            del self._wakes[number]


class EndOfStream(Exception):
    """Raised by a reader that has nothing more to say. `last` is sent before the stream closes."""

    def __init__(self, last: bytes = b"") -> None:
        super().__init__()
        self.last = last


class Streams:
    """The open event streams of a process, all of which end when it is told to stop."""

    def __init__(self) -> None:
        self.closing = False
        self._wakes: set[Callable[[], None]] = set()

    async def serve(
        self,
        name: str,
        receive: Receive,
        send: Send,
        feed: Feed[Any],
        pending: Pending,
        *,
        headers: Sequence[tuple[bytes, bytes]] = (),
        farewell: bytes = b"",
    ) -> None:
        """Answer a request with a stream, until the client or this process goes away.

        pending     `() -> bytes` to send now, none if there are none; it raises `EndOfStream` to close
        farewell    what is said when this process stops
        """
        woken = asyncio.Event()
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
        gone = asyncio.create_task(_gone(receive))
        gone.add_done_callback(lambda _: woken.set())
        self._wakes.add(woken.set)
        OPEN.labels(name).inc()
        last = b""
        try:
            with feed.waking(woken.set):
                while not gone.done():
                    woken.clear()
                    if self.closing:
                        last = farewell
                        break
                    if chunk := await pending():
                        await _send(send, chunk)
                    elif not await _within(HEARTBEAT, woken):
                        await _send(send, b":\n\n")
        except EndOfStream as end:
            last = end.last
        finally:
            OPEN.labels(name).dec()
            self._wakes.discard(woken.set)
            gone.cancel()
        await send({"type": "http.response.body", "body": last})

    def close(self) -> None:
        """Say farewell on every stream."""
        self.closing = True
        self.wake()

    def wake(self) -> None:
        """Let every stream look again whether it has something to say, and may still say it."""
        for wake in tuple(self._wakes):
            wake()

    @contextlib.contextmanager
    def closing_on_signals(self) -> Generator[None]:
        """End the streams as soon as the process is told to stop: its server waits for them, and would wait long."""
        loop = asyncio.get_running_loop()
        before: dict[int, Any] = {}

        def told(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.close)
            before[number](number, frame)

        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # only the main thread has signals
                if callable(handler := signal.getsignal(number)):
                    before[number] = handler
                    signal.signal(number, told)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def event(data: bytes, *, id: str | None = None, name: str | None = None) -> bytes:
    """One server-sent event. `data` is a single line."""
    head = b"".join(
        [b"event: %s\n" % name.encode() if name else b"", b"id: %s\n" % id.encode() if id is not None else b""]
    )
    return b"%sdata: %s\n\n" % (head, data)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _within(seconds: float, woken: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
    return woken.is_set()


async def _send(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})
