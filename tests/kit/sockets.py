"""A server on a real socket, and clients that do on the wire what no library does."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from holdfast.kit.http.connection import Connection
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.sockets import listen

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class SocketClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def flood(self, content: bytes, times: int) -> None:
        """Send something again and again, until the server does not take any more."""
        with contextlib.suppress(ConnectionError):
            for _ in range(times):
                await self.send(content)

    async def answer(self) -> tuple[int, Any]:
        """The status and the JSON, or else the bytes, of an answer."""
        async with asyncio.timeout(20):
            head = await self._reader.readuntil(b"\r\n\r\n")
            status, length = _status_and_length(head)
            body = await self._reader.readexactly(length)
        return status, json.loads(body) if b"application/json" in head else body

    async def head(self) -> tuple[int, int]:
        """The status of an answer, and the bytes of its body, which is not read."""
        async with asyncio.timeout(20):
            return _status_and_length(await self._reader.readuntil(b"\r\n\r\n"))

    async def read_until_closed(self, seconds: float = 20) -> bytes:
        """What still arrives until the server closes the connection; fails when it does not close it."""
        async with asyncio.timeout(seconds):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    async def read(self, count: int) -> None:
        async with asyncio.timeout(20):
            await self._reader.readexactly(count)

    async def is_served(self) -> bool:
        """Whether a request on this connection is answered."""
        await self.send(REQUEST)
        return (await self.answer())[0] == 200

    def close(self) -> None:
        self._writer.transport.abort()


def _status_and_length(head: bytes) -> tuple[int, int]:
    length = re.search(rb"content-length: (\d+)", head)
    return int(head.split(b" ", 2)[1]), int(length[1]) if length else 0


class SocketSite:
    """A server, and the clients that are connected to it."""

    def __init__(self, server: uvicorn.Server, port: int) -> None:
        self.port = port
        self._server = server
        self.clients: list[SocketClient] = []

    async def client(self, address: str = "127.0.0.1", *, receive_buffer: int | None = None) -> SocketClient:
        """A new connection from an address; a small buffer makes the server see soon that nobody reads."""
        raw = socket.socket()
        raw.setblocking(False)
        raw.bind((address, 0))
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        client = SocketClient(*await asyncio.open_connection(sock=raw, limit=receive_buffer or 2**16))
        self.clients.append(client)
        return client

    @property
    def connections(self) -> int:
        """How many the server has open."""
        return len(self._server.server_state.connections)

    def leave(self) -> None:
        """Close every connection."""
        for client in self.clients:
            client.close()


@contextlib.asynccontextmanager
async def serve_site(app: ASGIApp, bounds: ConnectionLimits) -> AsyncGenerator[SocketSite]:
    """Serve an application within bounds, from a thread of its own with the event loop that services have."""
    listener = listen("127.0.0.1", 0)
    protocol: Any = partial(Connection, bounds)
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    site = SocketSite(server, listener.getsockname()[1])
    running = asyncio.create_task(asyncio.to_thread(server.run, [listener]))
    try:
        yield site
    finally:
        site.leave()
        server.should_exit = True
        await running
        listener.close()
