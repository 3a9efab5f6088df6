"""Requests as a server hands them to a page."""

from collections.abc import Sequence

from starlette.types import Message

from holdfast.kit.http.handler import Request

FORM = b"application/x-www-form-urlencoded"


def request(
    *headers: tuple[bytes, bytes],
    query: bytes = b"",
    body: Sequence[bytes] = (b"",),
    method: str = "GET",
    path: str = "/page",
) -> Request:
    """A request whose body comes in pieces."""
    pieces = list(body)

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        raise AssertionError("nothing is sent by what reads a request")

    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": list(headers)}
    return Request(scope, receive, send, dict(headers))
