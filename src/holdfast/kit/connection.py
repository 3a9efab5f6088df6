"""What one connection may cost: the bytes and the time of its headers, and the time of answers that it does not read.

No handler sees this: it happens before a request has a path, or after its answer was given to the network.
"""

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.kit.bounds import Bounds
from holdfast.kit.handler import ARRIVED, JSON, NO_STORE, NOSNIFF, encode, headers_of
from holdfast.kit.metrics import REQUESTS, counter
from holdfast.kit.problems import HEADERS_TOO_LARGE, REQUEST_TIMEOUT, ErrorBody, Problem

HEADER_BYTES = 65_536
"""The most bytes of a request before its body: its address and its headers."""

READ_BYTES = 65_536
"""The least a client must read of a waiting answer in each period; else it is cut off."""

LINGER_SECONDS = 2
"""How long a refused client may go on sending. If the connection closed at once, it could miss the refusal."""


class Joined:
    """A transport that writes the head of an answer together with its body, since each write costs a system call.

    A first write waits for the second, at most until the end of this turn of the event loop.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._first = b""
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._first:
            self._transport.writelines([self._first, data])
            self._first = b""
        else:
            self._first = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._first and not self.is_closing():
            self._transport.write(self._first)
        self._first = b""


class Connection(HttpToolsProtocol):
    """One connection over HTTP/1.1, within the bounds.

    It reads requests and writes answers as uvicorn does. While a request arrives in one piece and its answer is read,
    the bounds cost no timers.
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
        self._joined = cast(Transport, Joined(transport, self.loop))
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
        self.cycle.transport = self._joined

    def on_message_complete(self) -> None:
        self._in_head = True
        self._arrived()
        self.scope[ARRIVED] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()

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
        *((b"content-type", JSON), (b"content-length", str(len(body)).encode()), (b"connection", b"close")),
        *(NO_STORE, NOSNIFF, *headers_of(problem)),
    ]
    lines = [b"%s: %s\r\n" % header for header in headers]
    return b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", body])
