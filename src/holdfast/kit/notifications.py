"""LISTEN and NOTIFY: every process of a service receives the notifications that one of them commits."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from hashlib import sha256
from typing import Any, LiteralString

import structlog
from psycopg import AsyncConnection

from holdfast.kit.ending import end
from holdfast.kit.logs import first_line
from holdfast.kit.pool import RETRY

CHANNEL: LiteralString = "holdfast"
"""The one channel of PostgreSQL; a notification is the name of our channel, a space, and payloads, a line each."""

NEXT = "\n"
"""What separates the payloads of a notification."""

MACHINE = sha256(socket.gethostname().encode()).hexdigest()[:8]
"""Names this machine."""

log = structlog.get_logger()


def listener_name(service: str, machine: str = MACHINE) -> str:
    """What the session is called by which a process listens, so that others see on which machine it runs."""
    return f"{service} {machine} listener"


class Receiver:
    """The connection by which a process receives notifications. It reconnects whenever the connection is lost.

    lost    called whenever the connection is lost
    away    whether the database could not be reached the last time
    """

    def __init__(self, url: str, name: str, options: dict[str, Any], lost: Callable[[], object]) -> None:
        self._url = url
        self._name = name
        self._options = options
        self._lost = lost
        self._listeners: dict[str, list[Callable[[str], None]]] = {}
        self.away = False
        self._receiving: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._receiving = asyncio.create_task(self._receive(), name=self._name)

    async def close(self) -> None:
        if self._receiving:
            await end([self._receiving])

    @contextlib.contextmanager
    def listen(self, channel: str, listener: Callable[[str], None]) -> Generator[None]:
        """Call `listener(payload)` for every notification on a channel while the block lasts.

        `listener("")` is also called after each (re)connection, since anything may have been missed before it.
        """
        self._listeners.setdefault(channel, []).append(listener)
        try:
            yield
        finally:
            self._listeners[channel].remove(listener)

    def deliver(self, channel: str, payload: str) -> None:
        """Call the listeners of a channel in this process."""
        for listener in tuple(self._listeners.get(channel, ())):
            try:
                listener(payload)
            except Exception as error:
                log.error("a listener failed", channel=channel, exc_info=error)

    async def _receive(self) -> None:
        while True:
            try:
                async with await AsyncConnection.connect(
                    self._url, autocommit=True, application_name=self._name, **self._options
                ) as connection:
                    await self._receive_from(connection)
            except Exception as error:
                if not self.away:
                    log.warning("the database is away; trying until it is back", error=first_line(error))
                self.away = True
                await asyncio.sleep(RETRY)

    async def _receive_from(self, connection: AsyncConnection[Any]) -> None:
        """Deliver what arrives. Returns when the connection is lost; raises if it was not good from the start."""
        await connection.execute(f"listen {CHANNEL}")
        if self.away:
            log.warning("the database is back")
        self.away = False
        for channel in self._listeners:
            self.deliver(channel, "")
        try:
            async for notification in connection.notifies():
                channel, _, payloads = notification.payload.partition(" ")
                for payload in payloads.split(NEXT):
                    self.deliver(channel, payload)
        except Exception as error:
            log.warning("listener lost its connection", error=first_line(error))
            self._lost()


async def notified(event: asyncio.Event, seconds: float) -> None:
    """Wait until a listener has set the event, at most so many seconds."""
    # Not `asyncio.wait_for`: in Python 3.11 it can lose a cancellation that comes in the moment in which it ends.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
