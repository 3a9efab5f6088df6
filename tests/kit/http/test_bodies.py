"""Bodies of requests as they arrive on a real connection: in one piece, in several, or never."""

from collections.abc import AsyncIterator

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.kit.contract.client import source
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http import body
from holdfast.kit.http.body import ArrivingBodies, read_body
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.handler import Request
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.events_service import eventually
from tests.kit.sockets import SocketClient, SocketSite, serve_site

HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
LARGE = 4 * 1024 * 1024


async def body_length(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body, or say why it was not read."""
    try:
        content = b"%d" % len(
            await read_body(Request(scope, receive, send, dict(scope["headers"])), max_bytes=2 * LARGE)
        )
    except Problem as problem:
        content = problem.message.encode()
    await Response(content)(scope, receive, send)


async def test_a_body_that_stops_halfway_is_refused_also_after_a_complete_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.3)
    async with serve_site(body_length, ConnectionLimits(1000, 500)) as site:
        client = await site.client()
        await client.send(HEAD % 4 + b"1234" + HEAD % 4 + b"12")

        assert await client.answer() == (200, b"4")
        assert await client.answer() == (200, b"The body took too long to arrive.")


async def test_a_body_is_read_whole_however_it_arrives() -> None:
    async with serve_site(body_length, ConnectionLimits(1000, 500)) as site:
        client = await site.client()
        for size in (0, 1, 1000, 100_000, LARGE):
            await client.send(HEAD % size + b"x" * size)
            assert await client.answer() == (200, b"%d" % size)
        for piece in (HEAD % 4, b"12", b"34"):
            await client.send(piece)
        assert await client.answer() == (200, b"4")


PART = 100_000
"""Bytes of a body that arrive in each test before its rest."""


@pytest.fixture
async def small(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[SocketSite, ArrivingBodies]]:
    """A server with room for three parts of bodies that have not arrived whole."""
    bodies = ArrivingBodies(ANY_BOUND, 3 * PART)
    monkeypatch.setattr(body, "BODIES", bodies)
    async with serve_site(body_length, ConnectionLimits(1000, 500)) as site:
        yield site, bodies


async def begin(site: SocketSite, bodies: ArrivingBodies, address: str) -> SocketClient:
    """A client that has sent a part of a body, which the server has read."""
    client, before = await site.client(address), bodies.received
    await client.send(HEAD % (2 * PART) + b"x" * PART)
    await eventually(lambda: bodies.received >= before + PART)
    return client


REFUSED = (200, b"Too many bodies arrive at the same time.")
"""The answer of `body_length` to a body that has given way."""


async def test_the_address_with_the_most_bytes_of_bodies_gives_way(small: tuple[SocketSite, ArrivingBodies]) -> None:
    site, bodies = small
    first, second, third = [await begin(site, bodies, "127.0.0.1") for _ in range(3)]
    other = await begin(site, bodies, "127.0.0.2")

    assert await first.answer() == REFUSED
    second.close()
    for client in (other, third):
        await client.send(b"x" * PART)
        assert await client.answer() == (200, b"%d" % (2 * PART))


async def test_networks_of_one_wide_network_give_way_as_one_address() -> None:
    bodies = ArrivingBodies(ANY_BOUND, 3 * PART)
    wide = [bodies.begin(source(f"2001:db8:1:{number}::1")) for number in range(3)]
    other = bodies.begin("address 192.0.2.1")
    for arrival in (*wide, other):
        bodies.add(arrival, PART)

    assert [arrival.was_stopped for arrival in (*wide, other)] == [True, False, False, False]


async def test_a_body_that_is_complete_or_abandoned_frees_its_room(small: tuple[SocketSite, ArrivingBodies]) -> None:
    site, bodies = small
    for _ in range(2):
        clients = [await begin(site, bodies, "127.0.0.1") for _ in range(2)]
        await clients[0].send(b"x" * PART)
        assert (await clients[0].answer()) == (200, b"%d" % (2 * PART))
        clients[1].close()
        await eventually(lambda: bodies.size == 0)
