"""Crowds: requests over a real port, whose clients close their connections while the requests wait."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from holdfast.kit.http.connection import Connection
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.sockets import listen
from tests.helpers.events_service import Client, Service
from tests.helpers.serving import running_already, serve_app


class Crowd:
    """Requests that an organizer sends on a connection each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def patch(self, client: Client, event: dict[str, Any], **fields: Any) -> None:
        """Send a change of an event, and do not wait for the answer."""
        body = json.dumps({"event": fields}).encode()
        head = f"PATCH /api/events/{event['id']} HTTP/1.1\r\nHost: here\r\nX-API-Key: {client.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(head.encode() + body)
        self._writers.append(writer)

    def leave(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def crowd_of(service: Service) -> AsyncGenerator[Crowd]:
    """A crowd at a service, which notices that clients have gone."""
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        protocol: Any = partial(Connection, ConnectionLimits(1_000, 500))
        async with serve_app(running_already(service.app), listening, http=protocol):
            crowd = Crowd(listening.getsockname()[1])
            yield crowd
            crowd.leave()
