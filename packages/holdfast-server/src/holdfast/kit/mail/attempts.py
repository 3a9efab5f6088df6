"""The connections of one process to the mail server."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator

from holdfast.kit.mail.transport import (
    MailConnection,
    Mailer,
)
from holdfast.kit.postgres.notifications import POLL_SECONDS


class MailConnections:
    """The connections of this process to the mail server. They stay open while there are mails."""

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer
        self._idle: list[tuple[MailConnection, contextlib.AsyncExitStack, float]] = []
        """Connections with what closes them, and since when they are idle: the one that was used last is at the end."""

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncGenerator[MailConnection]:
        """A connection that nothing else uses while the block lasts."""
        if self._idle:
            connection, closing, _ = self._idle.pop()
        else:
            closing = contextlib.AsyncExitStack()
            connection = await closing.enter_async_context(self._mailer.carrier())
        try:
            yield connection
        finally:
            self._idle.append((connection, closing, time.monotonic()))

    async def close_idle(self) -> None:
        """Close connections that were idle for `POLL_SECONDS`, until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            while self._idle and self._idle[0][2] < time.monotonic() - POLL_SECONDS:
                _, closing, _ = self._idle.pop(0)
                await closing.aclose()

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            _, closing, _ = self._idle.pop()
            await closing.aclose()
