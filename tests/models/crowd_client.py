"""A client of a crowd: cheap enough that hundreds of them fit beside what they ask, each from an address of its own."""

import asyncio
import json as json_format
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from benchmarks import load

CLIENTS_OF_AN_ADDRESS = 20

RECONNECT_SECONDS = 0.1
"""How long a client waits before it tries again to reach a process that has ended."""


class CrowdClient:
    """Sends one request at a time, over one connection to each process. It asks as `httpx2.AsyncClient` does.

    number             numbers the clients of a crowd
    timeout_seconds    the seconds after which an answer is no longer awaited
    """

    def __init__(self, number: int, headers: Mapping[str, str], timeout_seconds: float) -> None:
        place = number // CLIENTS_OF_AN_ADDRESS
        self._address = f"127.3.{place // 200}.{1 + place % 200}"
        self._headers = headers
        self._timeout_seconds = timeout_seconds
        self._connections: dict[int, load.Connection] = {}

    async def request(
        self, method: str, url: str, *, json: object = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """The answer. Raises `httpx2.TransportError` if the connection breaks, or if there is no answer in time."""
        parts = urlsplit(url)
        port = parts.port or 80
        body = b"" if json is None else json_format.dumps(json).encode()
        lines: dict[str, Any] = {**self._headers, **(headers or {})}
        message = load.request(method, parts.path, body=body, **lines)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                connection = self._connections.get(port)
                if connection is None or not connection.is_open:
                    connection = self._connections[port] = await load.connect(port, self._address)
                status, content = await connection.send(message)
        except OSError as error:  # TimeoutError is one
            if broken := self._connections.pop(port, None):
                broken.close()
            await asyncio.sleep(RECONNECT_SECONDS)
            raise httpx2.ConnectError(str(error)) from error
        head = connection.head.decode("latin-1").split("\r\n")[1:]
        fields = [(name, value) for name, _, value in (line.partition(": ") for line in head) if name]
        return httpx2.Response(status, headers=fields, content=content)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


AnyClient = httpx2.AsyncClient | CrowdClient
