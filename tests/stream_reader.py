"""A reader of an event stream, straight from the application and as it is sent."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Scope

Event = dict[str, Any]


def parse_event(text: str) -> Event:
    """One event: its fields by name, its data decoded."""
    event: Event = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        event[name] = value.removeprefix(" ")
    if "data" in event:
        event["data"] = json.loads(event["data"])
    return event


class Reader:
    """The reader's end of a stream that is open.

    sent    everything that was sent so far
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.begun = asyncio.Event()
        self.gone = asyncio.Event()
        self._closed = asyncio.Event()
        self.sent = ""
        self._text = ""
        self._arrived: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> Event:
        """The next event, comments and the like left out."""
        async with asyncio.timeout(10):
            while True:
                head, end, rest = self._text.partition("\n\n")
                if not end:
                    self._text += await self._arrived.get()
                    continue
                self._text = rest
                event = parse_event(head)
                if "data" in event:
                    return event

    async def closed(self) -> None:
        """The service has ended the stream."""
        async with asyncio.timeout(10):
            await self._closed.wait()

    def nothing_more(self) -> bool:
        """Whether all that has arrived was read."""
        return self._arrived.empty() and "data:" not in self._text

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.begun.set()
        else:
            text = message.get("body", b"").decode()
            self.sent += text
            self._arrived.put_nowait(text)
            if not message.get("more_body"):
                self._closed.set()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}


@contextlib.asynccontextmanager
async def read_stream(app: ASGIApp, url: str, *, client: str = "127.0.0.1", **headers: str) -> AsyncGenerator[Reader]:
    """A stream that is open for as long as the block lasts."""
    address = urlsplit(url)
    reader = Reader()
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": address.path,
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "root_path": "",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "client": (client, 1234),
        "server": ("service.test", 80),
    }

    async def serve() -> None:
        await app(scope, reader.receive, reader.send)

    task = asyncio.create_task(serve())
    try:
        async with asyncio.timeout(10):
            await reader.begun.wait()
        yield reader
    finally:
        reader.gone.set()
        async with asyncio.timeout(10):
            await task
