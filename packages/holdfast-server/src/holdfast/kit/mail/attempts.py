"""Attempts to send single mails: the connections of one process to the mail server, its pauses, and the results."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter

from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.mail import outbox
from holdfast.kit.mail.message import Envelope
from holdfast.kit.mail.outbox import AttemptResult, Mail, ResultWriter
from holdfast.kit.mail.shards import SenderSession, ShardLease
from holdfast.kit.mail.transport import (
    ConnectionLostAtContent,
    MailConnection,
    MailDeferral,
    Mailer,
    MailRefusal,
    MailServerUnavailable,
)
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import POLL_SECONDS

RETRY_BACKOFF = RetryBackoff(1.0, 60.0)
"""How long a process sends nothing while the mail server is unreachable."""

MAX_CONNECTION_BREAKS = 3
"""Connection losses at a mail after which the mail is deferred, so that it does not delay others. One is enough if the
server did not answer in time."""

MAIL_RESULTS = Counter("holdfast_mails", "Mails that ended, or were deferred by the mail server.", ["outcome"])

log = structlog.get_logger()


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


class ServerPause:
    """The time in which nothing is sent, because the mail server is unreachable or does not accept mails from us."""

    def __init__(self) -> None:
        self._ends_at = 0.0
        self._count = 0
        """Pauses since the mail server was last reached."""
        self.is_idle_since_pause = False
        """Whether nothing was leased since the last pause began."""

    def seconds(self) -> float:
        """Seconds until mails are sent again. 0 or less: no pause."""
        return self._ends_at - time.monotonic()

    def begin(self, error: MailServerUnavailable) -> bool:
        """Begin a pause; each is longer than the last. Returns False if there is one already."""
        if self.seconds() > 0:
            return False
        if not self._count:
            log.warning("mails cannot be sent; trying until they can", reason=str(error))
        self._count += 1
        self.is_idle_since_pause = True
        self._ends_at = time.monotonic() + RETRY_BACKOFF.pause(self._count)
        return True

    def note_server_reached(self) -> None:
        """End the growth of pauses: the next one is short again."""
        if self._count:
            log.warning("the mail server is reachable again")
            self._count = 0


class MailAttempts:
    """Sends single mails, and stores what came of each attempt."""

    def __init__(self, database: Database[Any], session: SenderSession, results: ResultWriter) -> None:
        self._database = database
        self._session = session
        self._results = results
        self.pause = ServerPause()
        self._breaks: dict[int, int] = {}

    def connection_breaks(self, mail: Mail) -> int:
        """How often the connection was lost at a mail."""
        return self._breaks.get(mail.id, 0)

    async def send(self, connection: MailConnection, lease: ShardLease, mail: Mail, envelope: Envelope) -> None:
        """Send a mail of a lease. Returns after its result is stored, or if it stays due."""
        try:
            await connection.carry(envelope, partial(self._session.check, lease))
        except MailServerUnavailable as error:
            await self._note_connection_loss(mail, error)
            return
        except MailRefusal as error:
            result = AttemptResult(mail.id, "failed", str(error))
        except MailDeferral as error:
            result = outbox.deferred_result(mail, str(error))
        else:
            result = AttemptResult(mail.id, "sent")
        await self.store(result)
        self.pause.note_server_reached()

    async def _note_connection_loss(self, mail: Mail, error: MailServerUnavailable) -> None:
        if self.pause.begin(error):
            await self._database.autocommit(lambda writer: outbox.store_error(writer, mail.id, str(error)))
        breaks = self.connection_breaks(mail) + isinstance(error, ConnectionLostAtContent)
        # Each stall keeps the lease from other mails, in all processes: so one is enough.
        if breaks == MAX_CONNECTION_BREAKS or (breaks and error.is_stall):
            await self.store(outbox.deferred_result(mail, str(error)))
        else:
            self._breaks[mail.id] = breaks

    async def store(self, result: AttemptResult) -> None:
        """Store the result of an attempt: the end of the mail, or its deferral. Returns after the commit."""
        await self._results.add(result)
        MAIL_RESULTS.labels(result.outcome or "deferred").inc()
        self._breaks.pop(result.id, None)
