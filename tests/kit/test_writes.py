"""When an answer is written to the network: its head with its body, and a head alone at once."""

import threading
from asyncio import AbstractEventLoop, get_running_loop, sleep, to_thread
from collections.abc import Sequence
from typing import Any

from starlette.types import Receive, Scope, Send

from holdfast.kit.bounds import Bounds
from holdfast.kit.connection import Joined
from tests.kit.sockets import REQUEST, serving

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Recorder:
    """A transport that remembers each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def writelines(self, data: Sequence[bytes]) -> None:
        self.writes.append(b"".join(data))

    def close(self) -> None:
        self.closed = True


def joined() -> tuple[Joined, Recorder]:
    recorder: Any = Recorder()
    loop: AbstractEventLoop = get_running_loop()
    return Joined(recorder, loop), recorder


async def test_a_head_is_written_together_with_its_body() -> None:
    transport, network = joined()

    transport.write(HEAD)
    transport.write(b"body")
    await sleep(0)

    assert network.writes == [HEAD + b"body"]


async def test_a_head_without_a_body_is_written_at_the_end_of_the_turn() -> None:
    transport, network = joined()

    transport.write(HEAD)
    assert network.writes == []
    await sleep(0)

    assert network.writes == [HEAD]


async def test_what_is_written_in_many_parts_stays_in_order() -> None:
    transport, network = joined()

    for part in (HEAD, b"1", b"2", b"3", b"4"):
        transport.write(part)
    await sleep(0)

    assert b"".join(network.writes) == HEAD + b"1234"


async def test_what_waits_is_written_before_the_connection_closes() -> None:
    transport, network = joined()

    transport.write(HEAD)
    transport.close()

    assert (network.writes, network.closed) == ([HEAD], True)


async def test_nothing_is_written_to_a_connection_that_was_lost() -> None:
    transport, network = joined()

    transport.write(HEAD)
    network.closed = True
    await sleep(0)

    assert network.writes == []


async def test_a_client_reads_the_head_of_a_stream_before_anything_is_sent_on_it() -> None:
    head_was_read = threading.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await to_thread(head_was_read.wait, 20)
        await send({"type": "http.response.body", "body": b"event"})

    async with serving(stream, Bounds(10, 10)) as site:
        client = await site.client()
        await client.send(REQUEST)
        assert await client.head() == (200, 5)
        head_was_read.set()
        await client.read(5)


async def test_answers_to_requests_that_came_together_stay_in_order() -> None:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})

    async with serving(echo, Bounds(10, 10)) as site:
        client = await site.client()
        await client.send(b"".join(REQUEST.replace(b"/ ", b"/%d " % number, 1) for number in range(10)))

        assert [await client.answer() for _ in range(10)] == [(200, b"/%d" % number) for number in range(10)]
