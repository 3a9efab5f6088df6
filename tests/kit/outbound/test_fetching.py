"""Fetching URLs of strangers within limits of time and size."""

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.kit.contract.problems import Problem
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import (
    MAX_CONCURRENT_LOOK_UPS_OF_OWNER,
    MAX_CONCURRENT_REQUESTS_OF_OWNER,
    MAX_WAITING,
    FetchedContent,
    OutboundClient,
)
from tests.helpers.events_service import eventually
from tests.helpers.outside_servers import (
    LOCAL,
    Script,
    client_reaching,
    fetch_refusal,
    ok_answer,
    outside_server,
    raw_answer,
    redirecting_script,
)

OWNER = ("tests", 1)


async def test_a_url_is_fetched_with_its_content_type() -> None:
    async with outside_server(
        raw_answer("200 OK\r\nContent-Type: IMAGE/PNG; q=1\r\nContent-Length: 3", b"png")
    ) as server:
        headers = {"content-type": "IMAGE/PNG; q=1", "content-length": "3"}
        assert await client_reaching(server).get(server.url, owner=OWNER, limit=3) == FetchedContent(
            b"png", "image/png", headers
        )


async def test_an_answer_without_a_type_or_a_length_is_accepted() -> None:
    async with outside_server(raw_answer("200 OK\r\nConnection: close", b"something")) as server:
        fetched = await client_reaching(server).get(server.url, owner=OWNER, limit=9)

    assert (fetched.content, fetched.content_type) == (b"something", "")


async def test_the_request_names_the_host_and_gives_nothing_else_away() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return [LOCAL]

    async with outside_server(ok_answer(b"")) as server:
        client = OutboundClient(exempt=[(LOCAL, server.port)], look_up=look_up)
        await client.get(f"http://Photos.Example:{server.port}/a%20b?c=d#e", owner=OWNER, limit=1, accept="image/png")

    request, *headers = server.requests[0].strip().split("\r\n")
    assert request == "GET /a%20b?c=d HTTP/1.1"
    assert dict(header.split(": ") for header in headers) == {
        "Host": f"photos.example:{server.port}",
        "User-Agent": "Holdfast",
        "Accept": "image/png",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "206 Partial", "300 Choices", "404 No", "500 No"])
async def test_an_answer_with_a_status_other_than_200_is_refused_with_it(status: str) -> None:
    async with outside_server(raw_answer(f"{status}\r\nContent-Length: 0")) as server:
        assert await fetch_refusal(client_reaching(server), server.url) == f"is answered with status {status[:3]}"


async def test_a_body_is_refused_by_the_length_it_says_it_has() -> None:
    async with outside_server(raw_answer("200 OK\r\nContent-Length: 1001")) as server:
        assert await fetch_refusal(client_reaching(server), server.url) == "holds more than 1000 bytes"


@pytest.mark.parametrize("head", ["Transfer-Encoding: chunked", "Connection: close"])
async def test_a_body_without_end_is_refused_once_it_is_too_large(head: str) -> None:
    async def endless(writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        while not writer.is_closing():
            writer.write(b"64\r\n" + b"x" * 100 + b"\r\n")
            await writer.drain()

    async with outside_server(endless) as server:
        assert await fetch_refusal(client_reaching(server), server.url) == "holds more than 1000 bytes"


@pytest.mark.parametrize(
    "answer",
    [
        raw_answer("200 OK\r\nContent-Length: 100", b"x" * 50),
        raw_answer("200 OK\r\nTransfer-Encoding: chunked", b"64\r\nxx"),
        raw_answer("200 OK\r\nContent-Length: many", b"x"),
        raw_answer("200 OK\r\nContent-Length: -1", b"x"),
        raw_answer("200 OK\r\nX: " + "x" * 200_000, b""),
        raw_answer("not a status", b""),
        raw_answer("", b""),
    ],
    ids=["shorter than said", "half a chunk", "no number", "negative", "a huge header", "no status", "nothing"],
)
async def test_an_answer_that_breaks_off_or_is_no_http_is_refused(answer: Script) -> None:
    async with outside_server(answer) as server:
        assert (
            await fetch_refusal(client_reaching(server), server.url) == "broke off, or is not answered as HTTP has it"
        )


async def test_bytes_beyond_the_content_length_are_not_read() -> None:
    async with outside_server(
        raw_answer("200 OK\r\nContent-Length: 3", b"png and something that was not announced")
    ) as server:
        assert (await client_reaching(server).get(server.url, owner=OWNER, limit=10)).content == b"png"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "unheard-of"])
async def test_a_compressed_answer_is_refused(encoding: str) -> None:
    async with outside_server(ok_answer(b"\x1f\x8b", f"Content-Encoding: {encoding}")) as server:
        assert "compressed" in await fetch_refusal(client_reaching(server), server.url)


@pytest.mark.parametrize("until", ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"])
async def test_an_answer_that_does_not_end_is_refused_after_the_timeout(until: str) -> None:
    async def stalls(writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(until.encode())
        await writer.drain()
        await gone.wait()

    gone = asyncio.Event()
    async with outside_server(stalls) as server:
        assert await fetch_refusal(client_reaching(server, seconds=0.1), server.url) == "took longer than 0.1 seconds"
        gone.set()


async def test_a_look_up_that_does_not_end_is_refused_after_the_timeout() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return await asyncio.Future()

    assert "took longer" in await fetch_refusal(OutboundClient(look_up=look_up, seconds=0.1), "http://slow.example/")


async def test_all_redirects_together_have_the_time_of_one_request() -> None:
    async def slowly(writer: asyncio.StreamWriter, request: str) -> None:
        requests.append(request)
        if len(requests) == 3:
            await gone.wait()
        await raw_answer(f"302 Found\r\nLocation: /{len(requests)}")(writer, request)

    requests: list[str] = []
    gone = asyncio.Event()
    async with outside_server(slowly) as server:
        assert "took longer" in await fetch_refusal(client_reaching(server, seconds=0.5), server.url)
        gone.set()


class SlowHosts:
    """Look-ups that end when the test says so, and the names that were looked up. Others have no address."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.end = asyncio.Event()

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self.hosts.append(host)
        if host == "slow.example":
            await self.end.wait()
        return []

    async def begin(self, count: int) -> None:
        """Wait until this many names are being looked up, and longer if more begin."""
        await eventually(lambda: len(self.hosts) >= count)
        await turns()


async def turns() -> None:
    """Let every task that is ready take a few turns."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_owners_with_slow_names_do_not_use_up_all_look_ups_and_requests() -> None:
    slow = SlowHosts()
    client = OutboundClient(look_up=slow.look_up)
    owners = [("tests", "unconfirmed", number % 4) for number in range(24)]
    requests = [asyncio.create_task(client.get("http://slow.example/", owner=owner, limit=1)) for owner in owners]
    await slow.begin(MAX_CONCURRENT_LOOK_UPS_OF_OWNER)

    with pytest.raises(FetchRefusal):  # it was looked up
        await client.get("http://other.example/", owner=("tests", 5), limit=1)

    assert slow.hosts == ["slow.example"] * MAX_CONCURRENT_LOOK_UPS_OF_OWNER + ["other.example"]
    slow.end.set()
    assert all(isinstance(error, FetchRefusal) for error in await asyncio.gather(*requests, return_exceptions=True))


async def test_one_owner_with_slow_servers_does_not_use_up_all_requests() -> None:
    started, end = list[str](), asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter, request: str) -> None:
        started.append(request)
        await end.wait()
        await ok_answer(b"late")(writer, request)

    async with outside_server(slowly) as slow, outside_server(ok_answer(b"soon")) as fast:
        client = OutboundClient(exempt=[(LOCAL, slow.port), (LOCAL, fast.port)])
        requests = [
            asyncio.create_task(client.get(slow.url, owner=("tests", "eve"), limit=10))
            for _ in range(MAX_CONCURRENT_REQUESTS_OF_OWNER + MAX_WAITING)
        ]
        await turns()

        with pytest.raises(Problem) as refusal:
            await client.get(slow.url, owner=("tests", "eve"), limit=10)
        fetched = await client.get(fast.url, owner=("tests", "ada"), limit=10)
        end.set()
        late = await asyncio.gather(*requests)

    assert (refusal.value.status, refusal.value.retry_after) == (503, 10)
    assert fetched.content == b"soon"
    assert {answer.content for answer in late} == {b"late"}


async def test_an_abandoned_look_up_keeps_its_slot_until_it_ends() -> None:
    slow = SlowHosts()
    client = OutboundClient(look_up=slow.look_up)
    requests = [
        asyncio.create_task(client.get("http://slow.example/", owner=OWNER, limit=1))
        for _ in range(MAX_CONCURRENT_LOOK_UPS_OF_OWNER)
    ]
    await slow.begin(MAX_CONCURRENT_LOOK_UPS_OF_OWNER)
    for request in requests:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)

    waiting = asyncio.create_task(client.get("http://other.example/", owner=OWNER, limit=1))
    await turns()
    before = [*slow.hosts]
    slow.end.set()

    with pytest.raises(FetchRefusal):
        await waiting
    assert before == ["slow.example"] * MAX_CONCURRENT_LOOK_UPS_OF_OWNER


async def test_a_proxy_named_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with outside_server(ok_answer(b"proxied")) as proxy, outside_server(ok_answer(b"direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await client_reaching(server).get(server.url, owner=OWNER, limit=10)).content == b"direct"
        assert proxy.requests == []


async def test_a_redirect_is_refused_if_the_caller_allows_none() -> None:
    async with outside_server(redirecting_script("/elsewhere")) as server:
        with pytest.raises(FetchRefusal, match="redirects to another address"):
            await client_reaching(server).get(server.url, owner=OWNER, limit=9, redirects=0)

    assert len(server.requests) == 1
