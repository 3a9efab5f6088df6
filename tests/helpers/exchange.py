"""Requests as a server hands them to an application, without a client that tidies them up, and streams of events."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
from starlette.types import ASGIApp

Header = tuple[bytes, bytes]
Message = dict[str, Any]
Event = dict[str, Any]

NO_BODY: Message = {"type": "http.request", "body": b""}
TIMEOUT_SECONDS = 10


def http_scope(
    method: str, path: str, headers: Sequence[Header], host: str = "events.test", **scope: Any
) -> dict[str, Any]:
    """What a server says of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode()), *headers],
        "client": ("127.0.0.1", 1234),
        "server": (host, 80),
        **scope,
    }


class Exchange:
    """One request to an application, and what it answers piece by piece.

    content    what the application has sent of the body of its answer
    ended      whether it has sent the last piece
    """

    def __init__(self, app: ASGIApp, scope: dict[str, Any], messages: Sequence[Message] = (NO_BODY,)) -> None:
        self.content = b""
        self.ended = asyncio.Event()
        self._pieces: asyncio.Queue[Any] = asyncio.Queue()
        self._arriving = iter(messages)
        self._gone = asyncio.Event()
        self._task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if message := next(self._arriving, None):
            return message
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, piece: Any) -> None:
        self.content += piece.get("body", b"")
        self._pieces.put_nowait(piece)
        if piece["type"] == "http.response.body" and not piece.get("more_body"):
            self.ended.set()

    def has_pieces(self) -> bool:
        """Whether something has arrived that was not read."""
        return not self._pieces.empty()

    async def piece(self) -> Any:
        """The next message of the answer; fails when the application ends without one."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            arriving = asyncio.create_task(self._pieces.get())
            await asyncio.wait({arriving, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not arriving.done() and self._pieces.empty():
                await self._task
            return await arriving

    async def response(self) -> httpx2.Response:
        """The whole answer."""
        start = await self.piece()
        while (await self.piece()).get("more_body"):
            pass
        await self._task
        return httpx2.Response(start["status"], headers=start["headers"], content=self.content)

    async def leave(self) -> None:
        """Go away, as a client does that closes the connection."""
        self._gone.set()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self._task


def parse_event(text: str) -> Event:
    """One event: its fields by name, its data decoded."""
    pairs = (line.partition(":") for line in text.splitlines())
    event: Event = {name: value.removeprefix(" ") for name, _, value in pairs}
    return {**event, "data": json.loads(event["data"])} if event.get("data") else event


class Stream:
    """An open stream of events."""

    def __init__(self, exchange: Exchange, start: Any) -> None:
        self.exchange = exchange
        self.status: int = start["status"]
        self.headers = httpx2.Headers(start["headers"])
        self._text = ""
        self._is_open = True

    @property
    def sent(self) -> str:
        """Everything that was sent so far."""
        return self.exchange.content.decode()

    async def event(self) -> Event:
        """The next event or comment; an empty one when the stream has ended."""
        while "\n\n" not in self._text and self._is_open:
            piece = await self.exchange.piece()
            self._text += piece["body"].decode()
            self._is_open = piece.get("more_body", False)
        event, _, self._text = self._text.partition("\n\n")
        return parse_event(event)

    async def message(self) -> Any:
        """The data of the next event."""
        return (await self.event())["data"]

    async def next(self) -> Event:
        """The next event with data; comments and the like are left out."""
        while "data" not in (event := await self.event()):
            assert event, "the stream has ended"
        return event

    async def wait_until_closed(self) -> None:
        """Wait until the service has ended the stream."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.exchange.ended.wait()

    def nothing_more(self) -> bool:
        """Whether all that has arrived was read."""
        return not self.exchange.has_pieces() and "data:" not in self._text


@contextlib.asynccontextmanager
async def read_stream(app: ASGIApp, url: str, *, client: str = "127.0.0.1", **headers: str) -> AsyncGenerator[Stream]:
    """A stream that is open for as long as the block lasts."""
    address = urlsplit(url)
    sent_headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = http_scope("GET", address.path, sent_headers, query_string=address.query.encode(), client=(client, 1234))
    exchange = Exchange(app, scope)
    try:
        yield Stream(exchange, await exchange.piece())
    finally:
        await exchange.leave()
