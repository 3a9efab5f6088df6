"""How answers are written to the network: those that are given whole, and those that are given in parts."""

import threading
from asyncio import to_thread
from collections.abc import Sequence

import pytest
from starlette.types import Receive, Scope, Send

from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.handler import Header, Reply, Request
from tests.kit.sockets import REQUEST, SocketClient, serve_site

BOUNDS = ConnectionLimits(10, 10)


class Answering:
    """An application that answers every request with its path, and with some headers."""

    def __init__(self, headers: Sequence[Header] = ()) -> None:
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send, dict(scope["headers"]))
        await Reply(200, scope["path"].encode(), self._headers, b"text/plain").send(request)


async def text(client: SocketClient, request: bytes) -> str:
    """All that a server sends after a request, until it closes the connection."""
    await client.send(request)
    return (await client.read_until_closed()).decode()


async def test_a_complete_answer_has_its_status_headers_and_content() -> None:
    async with serve_site(Answering([(b"x-made-by", b"us")]), BOUNDS) as site:
        answer = await text(await site.client(), REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    head, content = answer.split("\r\n\r\n")
    status, *headers = head.split("\r\n")
    assert (status, content) == ("HTTP/1.1 200 OK", "/")
    assert {"x-made-by: us", "content-length: 1", "connection: close"} < {*headers}
    assert any(header.startswith("date: ") for header in headers)


async def test_a_head_request_is_answered_without_content() -> None:
    async with serve_site(Answering(), BOUNDS) as site:
        client = await site.client()
        await client.send(REQUEST.replace(b"GET", b"HEAD"))

        assert await client.head() == (200, 1)
        assert await client.is_served()


async def test_a_connection_over_http_1_0_ends_with_its_answer() -> None:
    async with serve_site(Answering(), BOUNDS) as site:
        answer = await text(await site.client(), b"GET / HTTP/1.0\r\n\r\n")

    assert answer.endswith("\r\nconnection: close\r\n\r\n/")


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\0"])
async def test_a_header_with_a_line_break_is_not_sent(value: bytes) -> None:
    async with serve_site(Answering([(b"location", value)]), BOUNDS) as site:
        answer = await text(await site.client(), REQUEST)

    assert answer.startswith("HTTP/1.1 500 ")
    assert "location" not in answer


async def test_a_client_that_expects_100_continue_is_refused_before_it_sends_its_body() -> None:
    async with serve_site(Answering(), BOUNDS) as site:
        client = await site.client()
        await client.send(b"POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")

        assert await client.answer() == (200, b"/")


async def test_a_client_reads_the_head_of_a_stream_before_anything_is_sent_on_it() -> None:
    head_was_read = threading.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await to_thread(head_was_read.wait, 20)
        await send({"type": "http.response.body", "body": b"event"})

    async with serve_site(stream, BOUNDS) as site:
        client = await site.client()
        await client.send(REQUEST)
        assert await client.head() == (200, 5)
        head_was_read.set()
        await client.read(5)


async def test_answers_to_requests_that_came_together_stay_in_order() -> None:
    async def parts(scope: Scope, receive: Receive, send: Send) -> None:
        """Answers every other request in parts."""
        body = scope["path"].encode()
        if int(body[1:]) % 2:
            await Answering()(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})

    async with serve_site(parts, BOUNDS) as site:
        client = await site.client()
        await client.send(b"".join(REQUEST.replace(b"/ ", b"/%d " % number, 1) for number in range(10)))

        assert [await client.answer() for _ in range(10)] == [(200, b"/%d" % number) for number in range(10)]
