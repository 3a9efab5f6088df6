"""Reads the bodies of requests, with limits on their size and on the time they take."""

import asyncio

from holdfast.kit.contract import problems
from holdfast.kit.http.handler import Request

MAX_BODY = 1_048_576
BODY_TIMEOUT_SECONDS = 30
"""Seconds that a client may take to send a body."""


async def read_body(request: Request, kind: str = "application/json", *, most: int = MAX_BODY) -> bytes:
    """Read the whole body. Refuses a missing or wrong media type, a body that is too large, or one that takes too long.

    most    the maximum size of the body in bytes
    """
    declared = request.headers.get(b"content-type")
    if declared is not None and declared.split(b";")[0].strip().lower() != kind.encode():
        raise wrong_media_type(kind)
    encoding = request.headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding != b"identity":
        name = encoding.decode("latin-1")[:40]
        raise problems.UNSUPPORTED_MEDIA_TYPE(
            f"The body is compressed (Content-Encoding: {name}).", hint="Send it uncompressed, without this header."
        )
    if declared_length(request) > most:
        raise problems.PAYLOAD_TOO_LARGE()
    if request.has_arrived:
        body = await _receive_body(request, most)  # it does not wait, so a timeout would only cost time
    else:
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                body = await _receive_body(request, most)
        except TimeoutError as error:
            raise problems.BAD_REQUEST("The body took too long to arrive.") from error
    if body and declared is None:
        raise wrong_media_type(kind)
    return body


async def _receive_body(request: Request, most: int) -> bytes:
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


def has_body(request: Request) -> bool:
    """Whether a request has a body. Without a body, its media type does not matter."""
    return declared_length(request) > 0 or b"transfer-encoding" in request.headers


def declared_length(request: Request) -> int:
    """The length of the body that the headers declare, in bytes; 0 if they declare none. Raises `bad_request`."""
    length = request.headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        raise problems.BAD_REQUEST("Content-Length is not a number of bytes.")
    return int(length)


def wrong_media_type(kind: str) -> problems.Problem:
    """The problem for a body with a missing or wrong media type."""
    return problems.UNSUPPORTED_MEDIA_TYPE(f"The body is not declared as {kind}.", hint=f"Send Content-Type: {kind}.")
