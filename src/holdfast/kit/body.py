"""The bodies of requests, with bounds on their size and on how long they take."""

import asyncio

from holdfast.kit import problems
from holdfast.kit.handler import Request

MAX_BODY = 1_048_576
BODY_SECONDS = 30
"""How long a client may take to send its body."""


async def read_body(request: Request, kind: str = "application/json", *, most: int = MAX_BODY) -> bytes:
    """Read the whole body. A wrong type or none, a body that is too large, and one that takes too long are refused.

    most    the most bytes of the body
    """
    declared = request.headers.get(b"content-type")
    if declared is not None and declared.split(b";")[0].strip().lower() != kind.encode():
        raise undeclared(kind)
    if length(request) > most:
        raise problems.PAYLOAD_TOO_LARGE()
    if request.has_arrived:
        body = await _received(request, most)  # at once: a timeout would only cost time
    else:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _received(request, most)
        except TimeoutError as error:
            raise problems.BAD_REQUEST("The body took too long to arrive.") from error
    if body and declared is None:
        raise undeclared(kind)
    return body


async def _received(request: Request, most: int) -> bytes:
    pieces: list[bytes] = []
    room, more = most, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise problems.BAD_REQUEST("The client went away before the body was complete.")
        piece = message.get("body", b"")
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            raise problems.PAYLOAD_TOO_LARGE()
        more = message.get("more_body", False)
    return b"".join(pieces)


def length(request: Request) -> int:
    """How many bytes a request says that its body has; 0 if it does not say. Raises `bad_request`."""
    length = request.headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        raise problems.BAD_REQUEST("Content-Length is not a number of bytes.")
    return int(length)


def undeclared(kind: str) -> problems.Problem:
    """A body whose type was not said, or is another one."""
    return problems.UNSUPPORTED_MEDIA_TYPE(f"The body is not declared as {kind}.", hint=f"Send Content-Type: {kind}.")
