"""Writes a whole answer in one system call with uvicorn. Written for uvicorn 0.54.

An ASGI application sends head and body as two messages, and uvicorn writes them in two calls (docs/upstream.md). One
call takes about 10 us of processor time less, a sixth of what a read takes; `write_response` would go under 2 %.

`kit/http/connection.py` also overrides the methods with which uvicorn follows a connection, to limit what a client may
send and leave unread (decision 25): uvicorn has no settings for that.
"""

from collections.abc import Iterable
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import (
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

VERSION = "0.54"

Header = tuple[bytes, bytes]

CLOSE: Header = (b"connection", b"close")

__all__ = ["CLOSE", "HttpToolsProtocol", "RequestResponseCycle", "response_head", "write_response"]


async def write_response(
    protocol: HttpToolsProtocol, cycle: RequestResponseCycle, status: int, headers: Iterable[Header], content: bytes
) -> None:
    """Write an answer that is given as one piece, and end the request, as uvicorn does after the last message."""
    if protocol.flow.write_paused and not cycle.disconnected:
        await protocol.flow.drain()
    if cycle.disconnected:
        return
    closing = () if cycle.keep_alive else (CLOSE,)
    head = response_head(status, (*cycle.default_headers, *headers, *closing))
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()
    protocol.transport.writelines((head,) if cycle.scope["method"] == "HEAD" else (head, content))
    if closing:
        protocol.transport.close()
    cycle.on_response()


def response_head(status: int, headers: Iterable[Header]) -> bytes:
    """The bytes of the status and headers of an answer. Raises ValueError for a header that contains a line break."""
    return b"".join((STATUS_LINE[status], *map(_header_line, headers), b"\r\n"))


@lru_cache(1_000)  # most headers are the same in thousands of answers
def _header_line(header: Header) -> bytes:
    name, value = header
    if HEADER_VALUE_RE.search(value):
        raise ValueError(f"The header {name.decode()} has characters that no header may have.")
    return name + b": " + value + b"\r\n"
