"""Limits of one connection, of one address, and of all connections together."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.kit.contract.client import WIDE_CONNECTIONS, begin_request, source
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http import connection_limits as counts
from holdfast.kit.http.connection import MAX_HEADER_BYTES
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.operations.slots import Slots
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.events_service import eventually
from tests.kit.sockets import REQUEST, SocketSite, serve_site

HUGE = 16 * 1024 * 1024
"""Bytes of an answer that no buffer of the system can hold."""

SOON = 0.3
"""Seconds that the clients of these tests are given, instead of 10 and 30."""


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200; `/huge` with many bytes, `/unread` without reading the body, others after the body."""
    request = Request(scope, receive)
    if request.url.path != "/unread":
        await request.body()
    await Response(b"x" * HUGE if request.url.path == "/huge" else b"here")(scope, receive, send)


def padded_request(size: int) -> bytes:
    """A request whose head has this many bytes."""
    start, end = b"GET / HTTP/1.1\r\nHost: here\r\nPadding: ", b"\r\n\r\n"
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.fixture
async def site() -> AsyncIterator[SocketSite]:
    """A server with the usual bounds."""
    async with serve_site(answer, ConnectionLimits(1000, 500)) as site:
        yield site


@pytest.fixture
async def hasty() -> AsyncIterator[SocketSite]:
    """A server that does not wait long."""
    async with serve_site(answer, ConnectionLimits(1000, 500, header_seconds=SOON, write_seconds=SOON)) as site:
        yield site


# Headers


async def test_headers_of_up_to_64_kib_are_read(site: SocketSite) -> None:
    client = await site.client()
    await client.send(padded_request(MAX_HEADER_BYTES))

    assert (await client.answer())[0] == 200


@pytest.mark.parametrize("size", [MAX_HEADER_BYTES + 1, 2 * MAX_HEADER_BYTES, 20 * MAX_HEADER_BYTES])
async def test_headers_of_more_than_64_kib_are_answered_with_431(site: SocketSite, size: int) -> None:
    client = await site.client()
    await client.send(padded_request(size))

    status, body = await client.answer()

    assert (status, body["code"]) == (431, "headers_too_large")
    assert await client.read_until_closed() == b""


@pytest.mark.parametrize(
    "content",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost here\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=repr,
)
async def test_a_malformed_request_is_answered_with_400_in_the_envelope(site: SocketSite, content: bytes) -> None:
    client = await site.client()
    await client.send(content)

    status, body = await client.answer()
    assert (status, body["code"]) == (400, "bad_request")
    assert await client.read_until_closed() == b""


async def test_a_header_without_end_is_cut_off(site: SocketSite) -> None:
    client = await site.client()
    await client.send(b"GET / HTTP/1.1\r\nEndless: ")

    flooding = asyncio.create_task(client.flood(b"x" * 1_000_000, 10**9))

    assert (await client.answer())[0] == 431
    assert await (await site.client()).is_served()
    await flooding


async def test_an_address_without_end_is_cut_off(site: SocketSite) -> None:
    client = await site.client()
    await client.send(b"GET /" + b"x" * 2 * MAX_HEADER_BYTES)

    assert (await client.answer())[0] == 431


async def test_headers_of_every_request_have_a_limit_of_their_own(site: SocketSite) -> None:
    client = await site.client()
    for _ in range(3):
        await client.send(padded_request(MAX_HEADER_BYTES))
        assert (await client.answer())[0] == 200


async def test_a_body_is_not_counted_as_headers(site: SocketSite) -> None:
    client = await site.client()
    length = 10 * MAX_HEADER_BYTES
    await client.send(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % length + b"x" * length)

    assert (await client.answer())[0] == 200
    assert await client.is_served()


async def test_two_requests_sent_at_once_are_both_answered(site: SocketSite) -> None:
    client = await site.client()
    await client.send(REQUEST + REQUEST)

    assert [(await client.answer())[0] for _ in range(2)] == [200, 200]


# Time


@pytest.mark.parametrize("begun", [b"G", b"GET / HTTP/1.1\r\nHost: he", b"GET / HTTP/1.1\r\n"])
async def test_headers_that_do_not_arrive_in_time_are_refused(hasty: SocketSite, begun: bytes) -> None:
    client = await hasty.client()
    await client.send(begun)

    status, body = await client.answer()

    assert (status, body["code"]) == (408, "request_timeout")
    await client.read_until_closed()


async def test_headers_that_arrive_drop_by_drop_are_refused(hasty: SocketSite) -> None:
    client = await hasty.client()

    async def drip() -> None:
        await client.send(b"GET / HTTP/1.1\r\n")
        while True:
            await client.send(b"a: b\r\n")
            await asyncio.sleep(SOON / 10)

    dripping = asyncio.create_task(drip())
    assert (await client.answer())[0] == 408
    dripping.cancel()


async def test_headers_of_a_later_request_have_to_arrive_in_time_too(hasty: SocketSite) -> None:
    client = await hasty.client()
    assert await client.is_served()

    await client.send(REQUEST[:-1])

    assert (await client.answer())[0] == 408


@pytest.mark.parametrize(("sent", "answer"), [(b"", b""), (b"\r\n", b"HTTP/1.1 408")])
async def test_a_connection_without_a_request_is_closed(hasty: SocketSite, sent: bytes, answer: bytes) -> None:
    client = await hasty.client()
    await client.send(sent)

    assert (await client.read_until_closed(5))[:12] == answer


async def test_an_unread_body_is_not_accepted_for_ever(hasty: SocketSite) -> None:
    client = await hasty.client()
    await client.send(b"POST /unread HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000000\r\n\r\n")
    assert (await client.answer())[0] == 200

    flooding = asyncio.create_task(client.flood(b"x" * 1000, 10**9))

    await client.read_until_closed(5)
    await flooding


# Answers that are not read


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
async def test_an_answer_that_is_not_read_is_dropped(hasty: SocketSite, header: bytes) -> None:
    client = await hasty.client(receive_buffer=4096)
    await client.send(b"GET /huge HTTP/1.1\r\nHost: here\r\n%s\r\n" % header)
    await client.read(100)

    await until_left(hasty, 0)
    assert len(await client.read_until_closed()) < HUGE / 2


async def test_a_client_that_reads_slowly_gets_the_whole_answer(hasty: SocketSite) -> None:
    client = await hasty.client()
    await client.send(b"GET /huge HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    for _ in range(12):
        await client.read(HUGE // 16)
        await asyncio.sleep(SOON / 3)

    assert len(await client.read_until_closed()) > HUGE // 4


async def until_left(site: SocketSite, connections: int) -> None:
    """Wait until the server has cut off all connections but this many."""
    await eventually(lambda: site.connections <= connections)


async def test_the_oldest_unread_answer_is_dropped_when_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MAX_UNREAD_BYTES", 2 * HUGE)
    async with serve_site(answer, ConnectionLimits(1000, 500)) as site:
        clients = [await site.client(receive_buffer=4096) for _ in range(3)]
        for client in clients:
            await client.send(b"GET /huge HTTP/1.1\r\nHost: here\r\n\r\n")
            await client.read(100)

        await until_left(site, 2)
        assert len(await clients[0].read_until_closed()) < HUGE / 2


async def test_an_address_with_little_unread_loses_nothing_when_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MAX_UNREAD_BYTES", 2 * HUGE)
    async with serve_site(answer, ConnectionLimits(1000, 500)) as site:
        patient = await site.client("127.0.0.2", receive_buffer=4096)
        crowd = [await site.client(receive_buffer=4096) for _ in range(2)]
        for client in (patient, *crowd):
            await client.send(b"GET /huge HTTP/1.1\r\nHost: here\r\n\r\n")
            await client.read(100)

        await until_left(site, 2)
        assert len(await crowd[0].read_until_closed()) < HUGE / 2
        await patient.read(HUGE - 100)


# Clients that go


async def test_a_request_whose_client_has_gone_while_it_waited_is_not_begun() -> None:
    # The server runs in a thread of its own.
    slots, end, arrived, began = Slots(ANY_BOUND, 1), threading.Event(), queue.SimpleQueue[str](), list[str]()

    async def wait_for_slot(scope: Scope, receive: Receive, send: Send) -> None:
        begin_request(scope)
        arrived.put(scope["path"])
        with contextlib.suppress(Problem):
            async with slots.slot_of(("everybody",)):
                began.append(scope["path"])
                await asyncio.to_thread(end.wait)
        await Response(b"here")(scope, receive, send)

    async with serve_site(wait_for_slot, ConnectionLimits(10, 10)) as site:
        first, gone, last = [await site.client() for _ in range(3)]
        for client, path in ((first, b"/first"), (gone, b"/gone"), (last, b"/last")):
            await client.send(b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % path)
            await asyncio.to_thread(arrived.get)
        gone.close()
        await until_left(site, 2)
        end.set()
        answers = [await client.answer() for client in (first, last)]

    assert [status for status, _ in answers] == [200, 200]
    assert began == ["/first", "/last"]


# How many there may be


class IdleConnection:
    """A connection without a request, which is not closed in these tests."""

    def abort(self) -> None:
        raise AssertionError("there is room")

    def is_idle(self) -> bool:
        return True


def test_connections_from_one_wide_network_of_ipv6_are_limited() -> None:
    limits = ConnectionLimits(1000, 3)
    networks = [source(f"2001:db8:0:{number:x}::1") for number in range(10)]

    connections = [(network, IdleConnection()) for network in networks for _ in range(3)]
    problems = [limits.enter(network, connection) for network, connection in connections]
    another = limits.enter(source("2001:db8:1::1"), IdleConnection())
    for (network, connection), problem in zip(connections, problems, strict=True):
        limits.leave(network, connection, problem)

    assert [problem is None for problem in problems] == [True] * (3 * WIDE_CONNECTIONS) + [False] * 18
    assert another is None
    assert limits.enter(networks[-1], IdleConnection()) is None


async def test_connections_from_one_address_are_limited_and_others_served() -> None:
    async with serve_site(answer, ConnectionLimits(100, 3)) as site:
        first = [await site.client() for _ in range(3)]
        for client in first:
            assert await client.is_served()

        refused_client = await site.client()
        await refused_client.send(REQUEST)

        status, body = await refused_client.answer()
        assert (status, body["code"], body["retry_after"]) == (429, "rate_limited", 1)
        assert "3 connections" in body["error"]
        assert await (await site.client("127.0.0.2")).is_served()
        first[0].close()
        await eventually_served(site)


async def test_connections_of_a_trusted_proxy_are_not_limited_by_its_address() -> None:
    async with serve_site(answer, ConnectionLimits(100, 3, "127.0.0.1, 10.0.0.0/8")) as site:
        for _ in range(10):
            assert await (await site.client()).is_served()


async def test_above_the_limit_of_all_connections_the_answer_is_503() -> None:
    async with serve_site(answer, ConnectionLimits(3, 3)) as site:
        clients = [await site.client(f"127.0.0.{number}") for number in (1, 2, 3)]
        for client in clients:
            assert await client.is_served()

        refused_client = await site.client("127.0.0.4")
        await refused_client.send(REQUEST)

        status, body = await refused_client.answer()
        assert (status, body["code"], body["retry_after"]) == (503, "service_unavailable", 1)
        clients[0].close()
        await eventually_served(site)


async def test_an_address_with_many_connections_gives_room_to_others() -> None:
    async with serve_site(answer, ConnectionLimits(9, 8)) as site:
        crowd = [await site.client() for _ in range(8)]
        for client in crowd:
            assert await client.is_served()

        others = [await site.client(f"127.0.0.{number}") for number in range(2, 7)]

        for client in others:
            assert await client.is_served()
        await until_left(site, 9)
        # An idle one of the newest is closed, so the oldest ones stay.
        for client in crowd[:4]:
            assert await client.is_served()
        assert await crowd[-1].read_until_closed() == b""
        refused_client = await site.client()
        await refused_client.send(REQUEST)
        assert (await refused_client.answer())[0] == 503


async def test_a_connection_with_a_request_is_not_closed_for_others_while_there_is_an_idle_one() -> None:
    async with serve_site(answer, ConnectionLimits(3, 3)) as site:
        idle, first, second = [await site.client() for _ in range(3)]
        assert await idle.is_served()
        for busy in (first, second):
            await busy.send(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n")

        assert await (await site.client("127.0.0.2")).is_served()

        assert await idle.read_until_closed() == b""
        for busy in (first, second):
            await busy.send(b"body")
            assert (await busy.answer())[0] == 200


async def test_connections_that_are_refused_do_not_take_the_places_of_others() -> None:
    async with serve_site(answer, ConnectionLimits(400, 10)) as site:
        for _ in range(600):
            await site.client()

        assert await (await site.client("127.0.0.2")).is_served()


async def test_a_refused_connection_gets_the_envelope_of_its_service() -> None:
    def brief(problem: Any) -> dict[str, str]:
        return {"error": problem.code, "message": problem.message}

    async with serve_site(answer, ConnectionLimits(1, 1, error_body=brief)) as site:
        assert await (await site.client()).is_served()
        refused_client = await site.client()
        await refused_client.send(REQUEST)

        assert (await refused_client.answer())[1].keys() == {"error", "message"}


async def eventually_served(site: SocketSite) -> None:
    """Connect until a request is served."""

    async def is_served() -> bool:
        return await (await site.client()).is_served()

    await eventually(is_served)
