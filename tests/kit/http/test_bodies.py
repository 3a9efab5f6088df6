"""Bodies of requests as they arrive on a real connection: in one piece, in several, or never."""

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.kit.contract.problems import Problem
from holdfast.kit.http import body
from holdfast.kit.http.body import read_body
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.handler import Request
from tests.kit.sockets import serving

HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
LARGE = 4 * 1024 * 1024


async def told_length(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body, or say why it was not read."""
    try:
        content = b"%d" % len(await read_body(Request(scope, receive, send, dict(scope["headers"])), most=2 * LARGE))
    except Problem as problem:
        content = problem.message.encode()
    await Response(content)(scope, receive, send)


async def test_a_body_that_stops_halfway_is_given_up_on_also_after_one_that_came_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.3)
    async with serving(told_length, ConnectionLimits(1000, 500)) as site:
        client = await site.client()
        await client.send(HEAD % 4 + b"1234" + HEAD % 4 + b"12")

        assert await client.answer() == (200, b"4")
        assert await client.answer() == (200, b"The body took too long to arrive.")


async def test_a_body_is_read_whole_however_it_arrives() -> None:
    async with serving(told_length, ConnectionLimits(1000, 500)) as site:
        client = await site.client()
        for size in (0, 1, 1000, 100_000, LARGE):
            await client.send(HEAD % size + b"x" * size)
            assert await client.answer() == (200, b"%d" % size)
        for piece in (HEAD % 4, b"12", b"34"):
            await client.send(piece)
        assert await client.answer() == (200, b"4")
