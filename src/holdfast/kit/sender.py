"""Sends the mails of the outbox: one process at a time, over a few connections.

A mail that a mail server has accepted is stored as sent before anything else is sent on that connection. So a second
copy, with the same Message-ID, is possible only where a process ends between the server's answer and that commit.

Who sends holds a lock of the database, and makes sure of it in the last moment before it gives a mail away. The lock is
that of a table, not an advisory one: a statement that waits for an advisory lock has a snapshot all the while, and
nothing deleted since then could be cleaned up.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import psycopg
import structlog
from psycopg import AsyncConnection
from psycopg.errors import IdleInTransactionSessionTimeout

from holdfast.kit import outbox
from holdfast.kit.confirmations import Confirmations
from holdfast.kit.database import Database
from holdfast.kit.elsewhere import NotStarted
from holdfast.kit.ending import end
from holdfast.kit.logs import first_line
from holdfast.kit.mail import Envelope, Unwritable, plain
from holdfast.kit.mailer import Broken, BrokenAtContent, Carrier, PutOff, Refused
from holdfast.kit.notifications import notified
from holdfast.kit.outbox import Ended, Mail
from holdfast.kit.pace import give_way
from holdfast.kit.pool import KEEPALIVE, RETRY, SESSION
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem

Render = Callable[[Database[Any], Sequence[Mail]], Awaitable[Sequence[Envelope | Unwritable | None]]]
"""Writes mails. None for a mail means that it is no longer true.

If it raises, it is asked for each mail alone, unless nothing can be written now: `Problem`, `NotStarted`.
"""

CONNECTIONS = 4
PORTION = 8
"""Mails that are written together. At most two portions are ahead of the connections: what they say is recent."""

BEAT_SECONDS = 2
"""How often a sender without work looks whether it still is the sender: more often than sessions may be idle."""

FRESH_SECONDS = 0.5
"""How long that may take: an answer that took longer may have come before this process was stopped for a while."""

PATROL_SECONDS = 5
PAUSES = (1.0, 60.0)
"""Seconds without sending while there is no mail server to talk to, at first and at most; they double."""

BREAKS = 3
"""A mail at whose content the connection broke so often is put off, lest it keep the others waiting."""

GOODBYE_SECONDS = 8
"""How long mails that are being sent may take when the sender is stopped."""

log = structlog.get_logger()


class NotLeading(Exception):
    """This process is not, or no longer, the one that sends."""


async def run(database: Database[Any], render: Render) -> None:
    """Send mails whenever some are due and no other process does, until cancelled."""
    confirmations = Confirmations(database)
    changed = asyncio.Event()
    with database.listen(outbox.CHANNEL, lambda _: changed.set()):
        try:
            while True:
                # The database logs when it is away, and when it is back.
                with contextlib.suppress(NotLeading, psycopg.OperationalError, IdleInTransactionSessionTimeout):
                    # What was accepted before is stored first: only then is it known what is left to be sent.
                    await confirmations.settled()
                    async with leading(database) as lead:
                        await _Sender(database, render, lead, confirmations, changed).run()
                await asyncio.sleep(RETRY)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await confirmations.settled()


class Lead:
    """The lock of the one sender, held by a transaction on a connection of its own."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._using = asyncio.Lock()

    async def confirm(self) -> None:
        """Return if this process is the sender at this moment. Raises `NotLeading`.

        Nothing is awaited after the answer was found fresh: whoever gives a mail away at once can rely on it.
        """
        try:
            async with self._using:
                asked = 0.0
                while time.monotonic() > asked + FRESH_SECONDS:
                    asked = time.monotonic()
                    await self._connection.execute("select 1")
        except psycopg.Error as error:
            raise NotLeading(first_line(error)) from error

    async def beat(self) -> None:
        """Confirm now and then. Raises `NotLeading`."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self.confirm()


@contextlib.asynccontextmanager
async def leading(database: Database[Any]) -> AsyncGenerator[Lead]:
    """Wait until no other process is the sender, and be it until the block ends or the connection is lost."""
    name = f"{database.name} mails"
    async with await AsyncConnection.connect(
        database.url, autocommit=True, application_name=name, **KEEPALIVE
    ) as connection:
        await connection.execute(SESSION)
        await connection.execute("set lock_timeout = 0; set statement_timeout = 0")
        await connection.execute("begin")
        # This one makes known where the table is, which takes a snapshot. So the one that waits needs none.
        await connection.execute("lock table mail_sender in access share mode")
        await connection.execute("lock table mail_sender in exclusive mode")
        yield Lead(connection)


class _Sender:
    """One time of being the sender."""

    def __init__(
        self,
        database: Database[Any],
        render: Render,
        lead: Lead,
        confirmations: Confirmations,
        changed: asyncio.Event,
    ) -> None:
        self._database = database
        self._mailer = database.resources.mailer
        self._render = render
        self._lead = lead
        self._confirmations = confirmations
        self._changed = changed
        self._written: asyncio.Queue[tuple[Mail, Envelope] | None] = asyncio.Queue(PORTION)
        self._busy: set[int] = set()
        self._breaks: dict[int, int] = {}
        self._turn = asyncio.Lock()
        self._resumes_at = 0.0
        self._pause = 0.0
        self._stopping = False

    async def run(self) -> None:
        """Send until cancelled, or until this process is no longer the sender: then `NotLeading` is raised.

        Mails that are being sent then are sent to the end, if that does not take too long.
        """
        tasks = [
            asyncio.create_task(each, name=f"mails: {each.__name__}") for each in (self._feed(), self._lead.beat())
        ]
        workers = [asyncio.create_task(self._work(), name=f"mails: {number}") for number in range(CONNECTIONS)]
        try:
            done, _ = await asyncio.wait({*tasks, *workers}, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        except Problem as problem:
            if problem.type is SERVICE_UNAVAILABLE:
                raise NotLeading(problem.message) from problem
            raise
        finally:
            outbox.leave_measuring()
            await self._stop(tasks, workers)

    async def _stop(self, tasks: list[asyncio.Task[None]], workers: list[asyncio.Task[None]]) -> None:
        await end(tasks)
        self._stopping = True
        while not self._written.empty():
            self._written.get_nowait()
        for _ in workers:
            self._written.put_nowait(None)
        await asyncio.wait(workers, timeout=GOODBYE_SECONDS)
        await end(workers)

    async def _feed(self) -> None:
        """Write the mails that are due, and hand them to the connections."""
        measured = 0.0
        while True:
            if (rest := self._resumes_at - time.monotonic()) > 0:
                await asyncio.sleep(rest)
                continue
            self._changed.clear()
            mails = await self._database.read(lambda reader: outbox.due(reader, PORTION, [*self._busy]))
            if time.monotonic() > measured + PATROL_SECONDS:
                measured = time.monotonic()
                await self._database.read(outbox.measure)
            if not mails:
                soon = await self._database.read(outbox.next_due)
                await notified(self._changed, min(PATROL_SECONDS, PATROL_SECONDS if soon is None else max(soon, 0.01)))
                continue
            self._busy.update(each.id for each in mails)
            # The connection breaks at some mails again and again: they go last.
            mails.sort(key=lambda each: self._breaks.get(each.id, 0))
            for each in await self._write(mails):
                await self._written.put(each)

    async def _write(self, mails: list[Mail]) -> list[tuple[Mail, Envelope]]:
        """The mails that are still true and can be written; the others are ended."""
        try:
            written = await self._render(self._database, mails)
        except (Problem, NotStarted):
            raise
        except Exception as error:
            if len(mails) > 1:
                return [each for mail in mails for each in await self._write([mail])]
            [mail] = mails
            log.error("a mail could not be written", id=mail.id, kind=mail.kind, exc_info=error)
            await self._end(Ended(mail.id, "failed", f"{outbox.UNWRITTEN}: {plain(repr(error))[:500]}"))
            return []
        left: list[tuple[Mail, Envelope]] = []
        for mail, each in zip(mails, written, strict=True):
            if isinstance(each, Envelope):
                left.append((mail, each))
            else:
                await self._end(Ended(mail.id, "failed", each.why) if each else Ended(mail.id, "superseded"))
        return left

    async def _work(self) -> None:
        """Send mails over one connection, which is kept while there are some."""
        while not self._stopping and (each := await self._written.get()):
            async with self._mailer.carrier() as carrier:
                while each:
                    async with self._turn:  # requests go first
                        await give_way()
                    await self._send(carrier, *each)
                    each = await self._next()

    async def _next(self) -> tuple[Mail, Envelope] | None:
        """The next mail; None if there is none for a while, and the connection is to be closed."""
        if not self._stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATROL_SECONDS):
                    return await self._written.get()
        return None

    async def _send(self, carrier: Carrier, mail: Mail, envelope: Envelope) -> None:
        if time.monotonic() < self._resumes_at:
            self._busy.discard(mail.id)
            return
        try:
            await carrier.carry(envelope, self._lead.confirm)
        except Broken as error:
            await self._broken(mail, error)
            return
        except Refused as error:
            ended = Ended(mail.id, "failed", str(error))
        except PutOff as error:
            ended = outbox.put_off(mail, str(error))
        else:
            ended = Ended(mail.id, "sent")
        await self._end(ended)
        if self._pause:
            log.warning("mails are sent again")
            self._pause = 0.0

    async def _broken(self, mail: Mail, error: Broken) -> None:
        self._rest(error)
        breaks = self._breaks.get(mail.id, 0) + isinstance(error, BrokenAtContent)
        if breaks == BREAKS:
            await self._end(outbox.put_off(mail, str(error)))
        else:
            self._breaks[mail.id] = breaks
            self._busy.discard(mail.id)

    async def _end(self, ended: Ended) -> None:
        """Store what came of a mail; return when that is committed."""
        await self._confirmations.add(ended)
        outbox.MAILS.labels(ended.outcome or "put off").inc()
        self._breaks.pop(ended.id, None)
        self._busy.discard(ended.id)
        self._changed.set()

    def _rest(self, error: Broken) -> None:
        """Send nothing for a while: the mail server is away, or does not take mails from us."""
        if time.monotonic() < self._resumes_at:
            return
        if not self._pause:
            log.warning("mails cannot be sent; trying until they can", reason=str(error))
        first, longest = PAUSES
        self._pause = min(2 * self._pause, longest) or first
        self._resumes_at = time.monotonic() + self._pause
        self._changed.set()
