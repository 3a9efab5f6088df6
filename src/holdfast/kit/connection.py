"""What one connection may cost: the bytes and the time of its headers, and the time of answers that it does not read.

No handler sees this: it happens before a request has a path, or after its answer was given to the network.
"""

from asyncio import TimerHandle, Transport
from collections.abc import Iterable
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from holdfast.kit.bounds import Bounds
from holdfast.kit.draining import is_draining
from holdfast.kit.handler import ANSWER, ARRIVED, JSON, NO_STORE, NOSNIFF, Header, encode, headers_of
from holdfast.kit.metrics import REQUESTS, counter
from holdfast.kit.problems import HEADERS_TOO_LARGE, REQUEST_TIMEOUT, ErrorBody, Problem

HEADER_BYTES = 65_536
"""The most bytes of a request before its body: its address and its headers."""

READ_BYTES = 65_536
"""The least a client must read of a waiting answer in each period; else it is cut off."""

LINGER_SECONDS = 2
"""How long a refused client may go on sending. If the connection closed at once, it could miss the refusal."""

CLOSE: Header = (b"connection", b"close")


class Connection(HttpToolsProtocol):
    """One connection over HTTP/1.1, within the bounds.

    It reads requests as uvicorn does, and writes those answers as uvicorn does that are not given whole. While a
    request arrives in one piece and its answer is read, the bounds cost no timers.
    """

    def __init__(self, bounds: Bounds, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._bounds = bounds
        self._source: str | None = None
        self._problem: Problem | None = None
        """Why every request of this connection is refused."""
        self._refused = False
        self._in_head = True
        """Whether what arrives next belongs to the head of a request."""
        self._head_bytes = 0
        self._arrival: TimerHandle | None = None
        """Ends the connection when the head or the rest of a request does not arrive."""
        self._reading: TimerHandle | None = None
        """Ends the connection when its client does not read."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._source = self._bounds.source(self.client)
        self._problem = self._bounds.enter(self._source)
        if self._problem and self._bounds.is_flooded:
            self.abort()
        else:
            self._expect(LINGER_SECONDS if self._problem else self._bounds.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._bounds.leave(self._source, self._problem)
        self._bounds.forget(self)
        self._arrived()
        self._stop_watching()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._problem:
            self._refuse(self._problem)
            return
        if self._in_head:
            room = HEADER_BYTES - self._head_bytes
            self._head_bytes += len(data)
            if len(data) > room:
                super().data_received(data[:room])
                if self._in_head:
                    self._refuse(HEADERS_TOO_LARGE())
                    return
                data = data[room:]
        super().data_received(data)
        if self._in_head and self._head_bytes and not self._arrival:
            self._expect(self._bounds.header_seconds)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._arrived()
        super().on_headers_complete()
        if is_draining():
            self.cycle.keep_alive = False
        self.scope[ANSWER] = partial(self._answer, self.cycle)  # type: ignore[typeddict-unknown-key]

    def on_message_complete(self) -> None:
        self._in_head = True
        self._arrived()
        self.scope[ARRIVED] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()

    async def _answer(
        self, cycle: RequestResponseCycle, status: int, headers: Iterable[Header], content: bytes
    ) -> None:
        """Write an answer that is given whole, by one system call. uvicorn writes its head and its body by one each."""
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        closing = () if cycle.keep_alive else (CLOSE,)
        head = _head(status, (*cycle.default_headers, *headers, *closing))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        self.transport.writelines((head,) if cycle.scope["method"] == "HEAD" else (head, content))
        if closing:
            self.transport.close()
        cycle.on_response()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch(self.transport.get_write_buffer_size())
        elif not self._in_head:
            # The answer was sent before the body had arrived, so nobody reads the body.
            self._expect(self._bounds.header_seconds)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch(self.transport.get_write_buffer_size())

    def pause_writing(self) -> None:
        super().pause_writing()
        size = self.transport.get_write_buffer_size()
        self._watch(size)
        self._bounds.wait(self, size)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._bounds.forget(self)
        if not self.transport.is_closing():
            self._stop_watching()

    def abort(self) -> None:
        """Close the connection at once, and drop what was not sent."""
        self.transport.abort()

    def _expect(self, seconds: float) -> None:
        """Give the client some seconds to send the head, or the rest, of a request."""
        self._arrival = self.loop.call_later(seconds, self._late)

    def _arrived(self) -> None:
        if self._arrival:
            self._arrival.cancel()
            self._arrival = None

    def _late(self) -> None:
        self._arrival = None
        if self._head_bytes and not self._refused:
            self._refuse(REQUEST_TIMEOUT())
        else:
            self.abort()

    def _watch(self, size: int) -> None:
        """See after some seconds whether the client has read."""
        self._stop_watching()
        self._reading = self.loop.call_later(self._bounds.write_seconds, self._unread, size)

    def _stop_watching(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None

    def _unread(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if before - size < READ_BYTES:
            self.abort()
        else:
            self._watch(size)

    def _refuse(self, problem: Problem) -> None:
        """Answer with a problem and close, unless an answer to an earlier request is being sent."""
        self._refused = True
        self._arrived()
        counter(REQUESTS, "connection", problem.status).inc()
        if self.cycle and not self.cycle.response_complete:
            self.abort()
            return
        self.transport.write(_response(problem, self._bounds.error_body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._expect(LINGER_SECONDS)


def _response(problem: Problem, error_body: ErrorBody) -> bytes:
    """A refusal as it is sent over HTTP/1.1."""
    body = encode(error_body(problem))
    headers = [
        *((b"content-type", JSON), (b"content-length", str(len(body)).encode()), CLOSE),
        *(NO_STORE, NOSNIFF, *headers_of(problem)),
    ]
    return _head(problem.status, headers) + body


def _head(status: int, headers: Iterable[Header]) -> bytes:
    """The status and the headers of an answer. Raises ValueError for a header that would break into another line."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        if HEADER_VALUE_RE.search(value):
            raise ValueError(f"The header {name.decode()} has characters that no header may have.")
        lines += (name, b": ", value, b"\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)
