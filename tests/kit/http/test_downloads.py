"""Files that are sent while they are written."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message

from holdfast.kit.http.answers import Download
from holdfast.kit.http.handler import Request


class DownloadClient:
    """A client that reads a download, and goes away after some messages."""

    def __init__(self, method: str = "GET", stays: int = 100) -> None:
        self.got: list[Message] = []
        self._stays = stays
        self._gone = asyncio.Event()
        self.request = Request({"type": "http", "method": method}, self._receive, self._send, {})

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.got.append(message)
        if len(self.got) == self._stays:
            self._gone.set()
        await asyncio.sleep(0)


async def count_up(numbers: list[int], fails_at: int = 1_000) -> AsyncIterator[bytes]:
    for number in range(5):
        if number == fails_at:
            raise RuntimeError("the disk is full")
        numbers.append(number)
        # The server that sends the parts tells in between that a client is gone.
        await asyncio.sleep(0)
        yield b"%d" % number


def download(parts: AsyncIterator[bytes]) -> Download:
    return Download(200, media_type=b"text/csv", filename="a.csv", parts=parts)


async def test_a_file_is_sent_in_parts_and_ends() -> None:
    client = DownloadClient()

    await download(count_up([])).send(client.request)

    start, *parts = client.got
    assert (b"content-disposition", b'attachment; filename="a.csv"') in start["headers"]
    assert b"".join(part["body"] for part in parts) == b"01234"
    assert [part.get("more_body", False) for part in parts] == [True] * 5 + [False]


async def test_a_download_that_fails_has_no_end() -> None:
    client = DownloadClient()

    with pytest.raises(RuntimeError, match="the disk is full"):
        await download(count_up([], fails_at=2)).send(client.request)

    assert [(message["body"], message["more_body"]) for message in client.got[1:]] == [(b"0", True), (b"1", True)]


async def test_a_download_stops_when_its_client_is_gone() -> None:
    client, numbers = DownloadClient(stays=2), list[int]()

    await download(count_up(numbers)).send(client.request)

    assert len(numbers) < 5
    assert [(message["body"], message["more_body"]) for message in client.got[1:]] == [(b"0", True)]


async def test_a_head_request_of_a_download_writes_no_file() -> None:
    client, numbers = DownloadClient("HEAD"), list[int]()

    await download(count_up(numbers)).send(client.request)

    assert numbers == []
    assert client.got[1:] == [{"type": "http.response.body", "body": b""}]
