"""Limits of one connection: the size and the time of request headers, and the time for which it leaves answers unread.

No handler takes part in this: it happens before a request has a path, or after its answer was given to the network.
"""

from asyncio import TimerHandle, Transport
from functools import partial
from typing import Any

from holdfast.kit.compat.uvicorn_protocol import (
    CLOSE,
    HttpToolsProtocol,
    RequestResponseCycle,
    response_head,
    write_response,
)
from holdfast.kit.contract.client import CLIENT, Client
from holdfast.kit.contract.problems import BAD_REQUEST, HEADERS_TOO_LARGE, REQUEST_TIMEOUT, ErrorBody, Problem
from holdfast.kit.environment.metrics import REQUESTS, counter
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.handler import ANSWER, ARRIVED, JSON, NO_STORE, NOSNIFF, encode, headers_of
from holdfast.kit.http.sockets import is_draining

MAX_HEADER_BYTES = 65_536
"""The maximum size of a request before its body, that is of its address and headers, in bytes."""

MAX_PIPELINED_REQUESTS = 16
"""Requests of one connection that may wait for the answer to an earlier one. Then the connection closes after their
answers, and the client sends further requests again (RFC 9112, section 9.3.2).
"""

MIN_READ_BYTES = 65_536
"""Bytes of a waiting answer that a client must read in each period; else its connection is closed."""

LINGER_SECONDS = 2
"""Seconds that a refused client may continue to send. If its connection closed at once, it could miss the refusal."""


class Connection(HttpToolsProtocol):
    """One connection over HTTP/1.1, with limits.

    It reads requests as uvicorn does, and also writes answers as uvicorn does unless they are given as one piece. While
    requests arrive in one piece and answers are read, the limits need no timers.
    """

    def __init__(self, limits: ConnectionLimits, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._limits = limits
        self._remote = Client()
        self._source: str | None = None
        self._problem: Problem | None = None
        """The problem with which every request of this connection is refused."""
        self._refused = False
        self._unbegun = b""
        """What has arrived of a request that waits for its turn."""
        self._pipelined: tuple[RequestResponseCycle, Any] | None = None
        """The next of the requests that were sent together, if it waits for its turn; with the application."""
        self._begins_pipelined = False
        """Whether the request that begins now was sent together with the one that was just answered."""
        self._is_full = False
        """Whether too many requests were sent together: what follows them is not read."""
        self._in_head = True
        """Whether the next bytes belong to the head of a request."""
        self._head_bytes = 0
        self._arrival_timer: TimerHandle | None = None
        """Ends the connection when the head or the rest of a request does not arrive."""
        self._reading_timer: TimerHandle | None = None
        """Ends the connection when its client does not read."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._source = self._limits.source(self.client)
        self._problem = self._limits.enter(self._source, self)
        if self._problem and self._limits.is_flooded:
            self.abort()
        else:
            self._start_arrival_timer(LINGER_SECONDS if self._problem else self._limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._remote.leave()
        self._limits.leave(self._source, self, self._problem)
        self._limits.forget(self)
        self._unbegun = b""
        self._pipelined = None
        self._stop_arrival_timer()
        self._stop_reading_timer()

    def data_received(self, data: bytes) -> None:
        if self._refused or self._is_full:
            return
        if self._problem:
            self._refuse(self._problem)
        elif self._unbegun:
            self._keep_unbegun(data)
        elif self._is_between_requests() and not self._limits.pace.begins_at_once(self.loop, data, self._source):
            self._limits.pace.add(self, self._source)
            self._keep_unbegun(data)
        else:
            self._receive(data)

    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self._is_between_requests() and not self._unbegun

    def _is_between_requests(self) -> bool:
        return self._in_head and not self._head_bytes and (not self.cycle or self.cycle.response_complete)

    def _keep_unbegun(self, data: bytes) -> None:
        """Keep what has arrived until the turn of its request. Reading stops when it is more than a head may have."""
        self._unset_keepalive_if_required()
        self._stop_arrival_timer()
        self._unbegun += data
        if len(self._unbegun) > MAX_HEADER_BYTES:
            self.flow.pause_reading()

    def begin(self) -> None:
        """Begin the request that has waited; nothing if its client has gone."""
        pipelined, self._pipelined = self._pipelined, None
        if pipelined and not self.transport.is_closing():
            super()._start_asgi_task(*pipelined)
        data, self._unbegun = self._unbegun, b""
        if data and not self.transport.is_closing():
            self.flow.resume_reading()
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self._in_head:
            room = MAX_HEADER_BYTES - self._head_bytes
            self._head_bytes += len(data)
            if len(data) > room:
                super().data_received(data[:room])
                if self._in_head:
                    self._refuse(HEADERS_TOO_LARGE())
                    return
                data = data[room:]
        super().data_received(data)
        if self._in_head and self._head_bytes and not self._arrival_timer:
            self._start_arrival_timer(self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._stop_arrival_timer()
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            self._is_full = True
            self.cycle.keep_alive = False
            raise ValueError("too many requests were sent together")  # this is how a parser is stopped
        self._in_head = False
        self.scope[CLIENT] = self._remote  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        if is_draining():
            self.cycle.keep_alive = False
        self.scope[ANSWER] = partial(write_response, self, self.cycle)  # type: ignore[typeddict-unknown-key]

    def on_message_complete(self) -> None:
        self._in_head = True
        self._stop_arrival_timer()
        self.scope[ARRIVED] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._begins_pipelined = True
        super().on_response_complete()
        self._begins_pipelined = False
        if self.pipeline:
            self.flow.pause_reading()
        if self.transport.is_closing():
            self._start_reading_timer(self.transport.get_write_buffer_size())
        elif not self._in_head:
            # The answer was sent before the body had arrived, so no handler reads the body.
            self._start_arrival_timer(self._limits.header_seconds)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin a request; one that was sent together with earlier ones begins in its turn."""
        if self._begins_pipelined and not self._limits.pace.begins_at_once(self.loop, b"", self._source):
            self._pipelined = cycle, app
            self._limits.pace.add(self, self._source)
        else:
            super()._start_asgi_task(cycle, app)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._start_reading_timer(self.transport.get_write_buffer_size())

    def pause_writing(self) -> None:
        super().pause_writing()
        size = self.transport.get_write_buffer_size()
        self._start_reading_timer(size)
        self._limits.wait(self, size)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._limits.forget(self)
        if not self.transport.is_closing():
            self._stop_reading_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the words of the service."""
        if self._is_full:
            return
        self._refuse(BAD_REQUEST("This cannot be read as a request of HTTP/1.1.", hint="Use an HTTP client."))

    def shutdown(self) -> None:
        self.begin()
        super().shutdown()

    def abort(self) -> None:
        """Close the connection at once, and drop unsent bytes."""
        self.transport.abort()

    def _start_arrival_timer(self, seconds: float) -> None:
        """Start the timer within which the client must send the head, or the rest, of a request."""
        self._arrival_timer = self.loop.call_later(seconds, self._end_arrival)

    def _stop_arrival_timer(self) -> None:
        if self._arrival_timer:
            self._arrival_timer.cancel()
            self._arrival_timer = None

    def _end_arrival(self) -> None:
        self._arrival_timer = None
        if self._head_bytes and not self._refused:
            self._refuse(REQUEST_TIMEOUT())
        else:
            self.abort()

    def _start_reading_timer(self, size: int) -> None:
        """Start the timer after which the client must have read enough."""
        self._stop_reading_timer()
        self._reading_timer = self.loop.call_later(self._limits.write_seconds, self._check_reading, size)

    def _stop_reading_timer(self) -> None:
        if self._reading_timer:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _check_reading(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if before - size < MIN_READ_BYTES:
            self.abort()
        else:
            self._start_reading_timer(size)

    def _refuse(self, problem: Problem) -> None:
        """Answer with a problem and close the connection; only close it while an earlier answer is being sent."""
        self._refused = True
        self._stop_arrival_timer()
        counter(REQUESTS, "connection", problem.status).inc()
        if self.cycle and not self.cycle.response_complete:
            self.abort()
            return
        self.transport.write(_response(problem, self._limits.error_body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start_arrival_timer(LINGER_SECONDS)


def _response(problem: Problem, error_body: ErrorBody) -> bytes:
    """The bytes of a refusal over HTTP/1.1."""
    body = encode(error_body(problem))
    headers = [
        *((b"content-type", JSON), (b"content-length", str(len(body)).encode()), CLOSE),
        *(NO_STORE, NOSNIFF, *headers_of(problem)),
    ]
    return response_head(problem.status, headers) + body
