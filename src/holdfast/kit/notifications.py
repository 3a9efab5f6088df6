"""LISTEN and NOTIFY: every process of a service receives the notifications that one of them commits."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, LiteralString

import structlog
from psycopg import AsyncConnection

CHANNEL: LiteralString = "holdfast"
"""The one channel of PostgreSQL; a notification is the name of our channel, a space, and the payload."""

log = structlog.get_logger()


class Receiver:
    """The connection by which a process receives notifications. It reconnects whenever the connection is lost.

    channels    the channels that receive an empty payload after each new connection
    deliver     `(channel, payload)`
    """

    def __init__(
        self,
        url: str,
        name: str,
        options: dict[str, Any],
        channels: Collection[str],
        deliver: Callable[[str, str], None],
    ) -> None:
        self._url = url
        self._name = name
        self._options = options
        self._channels = channels
        self._deliver = deliver
        self._receiving: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._receiving = asyncio.create_task(self._receive(), name=self._name)

    async def close(self) -> None:
        if self._receiving:
            self._receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._receiving

    async def _receive(self) -> None:
        while True:
            try:
                async with await AsyncConnection.connect(
                    self._url, autocommit=True, application_name=self._name, **self._options
                ) as connection:
                    await connection.execute(f"listen {CHANNEL}")
                    for channel in self._channels:
                        self._deliver(channel, "")
                    async for notification in connection.notifies():
                        channel, _, payload = notification.payload.partition(" ")
                        self._deliver(channel, payload)
            except Exception as error:
                log.warning("listener lost its connection", error=str(error).strip().split("\n", 1)[0])
            await asyncio.sleep(0.5)
