"""Sends the mails of the outbox: each process leases shards of it (`shards.py`), and sends those of a lease over one
connection.

A mail that the mail server has accepted is stored as sent before another mail is sent on that connection. So a second
copy, with the same Message-ID, is possible only if a process ends between the server's answer and that commit.

The process reads the lease immediately before it sends the content of a mail. So a process that was stopped sends
nothing that another has sent meanwhile.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import psycopg
import structlog
from psycopg.errors import IdleInTransactionSessionTimeout

from holdfast.kit.background import row_work
from holdfast.kit.background.request_priority import yield_to_requests
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.subprocess_call import SubprocessStartError
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.mail import outbox, shards, turns
from holdfast.kit.mail.attempts import MailAttempts, MailConnections
from holdfast.kit.mail.lease_size import MAX_MAILS_OF_LEASE, MIN_MAILS_OF_LEASE, LeaseSize
from holdfast.kit.mail.message import Envelope, UnwritableMail, header_text
from holdfast.kit.mail.outbox import AttemptResult, HeldMailResult, Mail, ResultWriter
from holdfast.kit.mail.sending_rate import SendingRate
from holdfast.kit.mail.shards import SenderSession, SenderSessionLost, ShardLease, ShardLeases, sender_session
from holdfast.kit.postgres.connection_pool import RETRY_SECONDS
from holdfast.kit.postgres.database import Database, Reader
from holdfast.kit.postgres.notifications import POLL_SECONDS

Render = Callable[
    [Database[Any], Sequence[Mail]], Awaitable[Sequence[Envelope | UnwritableMail | HeldMailResult | None]]
]
"""Renders mails. None for a mail means that it is outdated, and is not sent.

If it raises, it is called again for each mail alone, except for errors that affect all mails: `Problem`,
`SubprocessStartError`.
"""

MAX_CONNECTIONS = 4
"""Connections of one process, and leases that it has at the same time."""

STALL_SECONDS = 2.0
"""Seconds that a mail may take before the other shards of its lease are given back."""

SENT_MAILS = Bound(
    name="Mails that are being sent",
    service="both",
    total=f"`SMTP_MAX_CONNECTIONS` connections of all processes, {MAX_CONNECTIONS} of each, for {MIN_MAILS_OF_LEASE} "
    f"mails each, or what leaves within a second, up to {MAX_MAILS_OF_LEASE}",
    tenant="one mail, in turns; mails to many people at once go last",
    address="none: forms and links to sign in are bounded",
    reserved="half of the turns, for mails of no organizer",
    stranger=f"Others wait one turn, of up to {MIN_MAILS_OF_LEASE} mails or a second.",
)

LEASE_PAUSE_SECONDS = 0.1
"""Seconds between leases, unless more mails are due than a lease may send. So mails that become due one by one are
leased, rendered and sent together. Each notice wakes all processes."""

STOP_TIMEOUT_SECONDS = 8
"""Seconds that mails which are being sent may take when the sender is stopped."""

log = structlog.get_logger()


async def run(database: Database[Any], render: Render) -> None:
    """Send mails when they are due, until cancelled. Many processes may do this at the same time."""
    results = ResultWriter(database)
    leases = ShardLeases()
    try:
        while True:
            # The database logs when it is unreachable, and when it is back.
            with contextlib.suppress(SenderSessionLost, psycopg.OperationalError, IdleInTransactionSessionTimeout):
                # First store earlier results: only then the remaining mails are known.
                await results.wait_until_stored()
                async with sender_session(database) as session:
                    await _send(database, render, session, results, leases)
            await asyncio.sleep(RETRY_SECONDS)
    finally:
        with contextlib.suppress(TimeoutError, Problem):
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                await results.wait_until_stored()
                await database.autocommit(leases.give_all_back)


async def _send(
    database: Database[Any], render: Render, session: SenderSession, results: ResultWriter, leases: ShardLeases
) -> None:
    """Send mails until cancelled, or until the session is lost: then raise `SenderSessionLost`."""
    connections = MailConnections(database.resources.mailer)
    attempts = MailAttempts(database, session, results)
    rate = SendingRate(database)
    due_mails = DueMails(database, render, attempts, rate)
    work = ShardWork(database, due_mails, attempts, results, leases, connections, rate)
    tasks: list[asyncio.Task[None]] = []
    try:
        await database.autocommit(leases.give_all_back)
        tasks += [
            asyncio.create_task(row_work.run(database, work), name="mails"),
            asyncio.create_task(session.check_regularly(), name="mails: session"),
            asyncio.create_task(connections.close_idle(), name="mails: idle connections"),
            asyncio.create_task(work.raise_fatal_error(), name="mails: failure"),
        ]
        ended_tasks, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended_tasks:
            task.result()
    except Problem as problem:
        if problem.type is SERVICE_UNAVAILABLE:
            raise SenderSessionLost(problem.message) from problem
        raise
    finally:
        await end_tasks(tasks)
        await connections.close()


class _Rendering:
    """Mails of a lease that wait to be rendered. `rendered`: those that can be sent; None: they wait."""

    def __init__(self, mails: list[Mail]) -> None:
        self.mails = mails
        self.rendered: list[tuple[Mail, Envelope]] | None = None


class DueMails:
    """Reads the due mails of leases, and renders them: those of all leases that wait at the same time together."""

    def __init__(self, database: Database[Any], render: Render, attempts: MailAttempts, rate: SendingRate) -> None:
        self._database = database
        self._render = render
        self._attempts = attempts
        self._rate = rate
        self._render_lock = asyncio.Lock()
        """One subprocess renders the mails of all leases: nothing is gained by rendering several batches at once."""
        self._renderings: list[_Rendering] = []
        self.turns = turns.OwnerTurns()
        self.lease_size = LeaseSize()

    async def read(self, lease: ShardLease) -> tuple[int, list[tuple[Mail, Envelope]]]:
        """How many mails are due of those that the lease may send, and those of them that can be sent."""
        await yield_to_requests()
        mails = await self._read_due([(shard.number, shard.owner or self.turns.first_owner) for shard in lease.shards])
        # Mails at which the connection was lost before go last.
        mails.sort(key=self._attempts.connection_breaks)
        rendering = _Rendering(mails)
        while rendering.rendered is None:
            self._renderings.append(rendering)
            try:
                async with self._render_lock:
                    # The task that rendered for this lease too may have failed, or was cancelled.
                    if rendering.rendered is None:
                        await self._render_waiting()
            finally:
                if rendering in self._renderings:
                    self._renderings.remove(rendering)
        return len(mails), rendering.rendered

    async def _render_waiting(self) -> None:
        """Render the mails of all leases that wait."""
        renderings, self._renderings = self._renderings, []
        mails = [mail for rendering in renderings for mail in rendering.mails]
        envelopes = {mail.id: envelope for mail, envelope in await self._render_mails(mails)} if mails else {}
        for rendering in renderings:
            rendering.rendered = [(mail, envelopes[mail.id]) for mail in rendering.mails if mail.id in envelopes]

    async def _read_due(self, shards: Sequence[tuple[int, str]]) -> list[Mail]:
        limit = self._rate.max_mails(self.lease_size.mails)
        while True:
            mails = await self._database.read(lambda reader: turns.due_mails(reader, shards, limit))
            behind = [mail.id for mail in mails if mail.is_behind]
            if not behind:
                self.lease_size.note_due(len(mails), limit)
                return mails
            await self._database.autocommit(lambda writer, ids=behind: outbox.hold_later_mails(writer, ids))

    async def _render_mails(self, mails: list[Mail]) -> list[tuple[Mail, Envelope]]:
        """Render mails. Returns those that can be sent, and stores the results of the others."""
        try:
            rendered = await self._render(self._database, mails)
        except (Problem, SubprocessStartError):
            raise
        except Exception as error:
            if len(mails) > 1:
                return [rendered_mail for mail in mails for rendered_mail in await self._render_mails([mail])]
            [mail] = mails
            log.error("a mail could not be written", id=mail.id, kind=mail.kind, exc_info=error)
            await self._attempts.store(
                AttemptResult(mail.id, "failed", f"{outbox.RENDER_ERROR_PREFIX}: {header_text(repr(error))[:500]}")
            )
            return []
        sendable: list[tuple[Mail, Envelope]] = []
        for mail, result in zip(mails, rendered, strict=True):
            if isinstance(result, Envelope):
                sendable.append((mail, result))
            elif not isinstance(result, HeldMailResult):
                await self._attempts.store(
                    AttemptResult(mail.id, "failed", result.why) if result else AttemptResult(mail.id, "superseded")
                )
        return sendable


class ShardWork(RowWork[ShardLease]):
    """Sends the due mails of shards that are leased together."""

    name = "mails"
    channels = (outbox.CHANNEL,)
    max_concurrent = MAX_CONNECTIONS

    def __init__(
        self,
        database: Database[Any],
        due_mails: DueMails,
        attempts: MailAttempts,
        results: ResultWriter,
        leases: ShardLeases,
        connections: MailConnections,
        rate: SendingRate,
    ) -> None:
        super().__init__()
        self._database = database
        self._due_mails = due_mails
        self._attempts = attempts
        self._results = results
        self._leases = leases
        self._connections = connections
        self._rate = rate
        self._holds_ended_at = float("-inf")
        self._last_lease_at = float("-inf")
        self._next_due_at: float | None = None
        self._turns = due_mails.turns
        self._ending: set[ShardLease] = set()
        """Leases of which no further mail is begun."""
        self._rate_waits: dict[ShardLease, asyncio.Task[None]] = {}
        self._send_lock = asyncio.Lock()
        self._fatal_event = asyncio.Event()
        self._fatal_error: Exception | None = None

    async def lease(self, limit: int, excluded: Sequence[Any], *, scan_all: bool) -> list[ShardLease]:
        self._attempts.pause.is_idle_since_pause = False
        if not self._due_mails.lease_size.has_more:
            await asyncio.sleep(self._last_lease_at + LEASE_PAUSE_SECONDS - time.monotonic())
        self._last_lease_at = time.monotonic()
        # A result that is not stored may be of a shard that this process has lost: it must not be sent again.
        await self._results.wait_until_stored()
        if time.monotonic() > self._holds_ended_at + POLL_SECONDS:
            self._holds_ended_at = time.monotonic()
            await self._database.autocommit(outbox.end_due_holds)
        # A mail that becomes due before the leases below is leased; one that becomes due after them is counted here.
        seconds = await self._database.read(turns.seconds_until_next_due)
        self._next_due_at = None if seconds is None else time.monotonic() + seconds
        leased = await self._database.autocommit(
            lambda writer: self._leases.lease(
                writer,
                limit,
                self._due_mails.lease_size.shards,
                self._database.resources.settings.smtp_max_connections,
                self._turns.first_owner,
                no_owner_first=self._turns.no_owner_first,
            )
        )
        if not leased:
            self._due_mails.lease_size.has_more = False
        self._turns.advance([shard.owner for lease in leased for shard in lease.shards])
        return leased

    async def renew(self, row: ShardLease) -> bool:
        return await self._database.autocommit(lambda writer: shards.renew(writer, row))

    async def seconds_until_due(self, reader: Reader[Any], excluded: Sequence[Any]) -> float | None:
        if self._attempts.pause.is_idle_since_pause:
            return max(0.0, self.pause_seconds())  # mails are due that could not be sent
        return None if self._next_due_at is None else self._next_due_at - time.monotonic()

    def pause_seconds(self) -> float:
        return self._attempts.pause.seconds()

    async def raise_fatal_error(self) -> None:
        """Wait until nothing can be sent for a reason that is not the mail server, and raise it."""
        await self._fatal_event.wait()
        if self._fatal_error:
            raise self._fatal_error

    async def handle(self, row: ShardLease) -> int:
        """Send due mails of a lease, and give it back. If cancelled, complete the mail that is being sent."""
        sending = asyncio.create_task(self._send_lease(row), name=f"mails: lease {row.id}")
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            self._ending.add(row)
            if rate_wait := self._rate_waits.get(row):
                rate_wait.cancel()
            await asyncio.wait([sending], timeout=STOP_TIMEOUT_SECONDS)
            raise
        finally:
            await end_tasks([sending])
            self._ending.discard(row)

    async def _send_lease(self, lease: ShardLease) -> int:
        """Send due mails of a lease, and give it back. Returns how many there were."""
        count = 0
        try:
            count = await self._send_mails(lease)
        except (SenderSessionLost, SubprocessStartError, Problem) as error:
            self._fatal_error = error
            self._fatal_event.set()
        with contextlib.suppress(Problem):  # then its shards are free when it ends
            await self._database.autocommit(lambda writer: self._leases.give_back(writer, lease))
        return count

    async def _send_mails(self, lease: ShardLease) -> int:
        count, rendered = await self._due_mails.read(lease)
        if rendered:
            started_at = time.monotonic()
            async with self._connections.use() as connection:
                for mail, envelope in rendered:
                    async with self._send_lock:  # requests go first
                        await yield_to_requests()
                    if self._rate.is_limited:
                        await self._wait_until_allowed(lease)
                    if lease in self._ending or self.pause_seconds() > 0:
                        break
                    if lease.has(mail.shard):
                        async with self._others_freed_at_stall(lease, mail.shard):
                            await self._attempts.send(connection, lease, mail, envelope)
                else:
                    self._due_mails.lease_size.note_duration(len(rendered), time.monotonic() - started_at)
        return count

    @contextlib.asynccontextmanager
    async def _others_freed_at_stall(self, lease: ShardLease, shard: int) -> AsyncGenerator[None]:
        """Give back the other shards of a lease if the block lasts for long."""

        async def free() -> None:
            with contextlib.suppress(Problem):  # then they are free when the lease ends
                await self._database.autocommit(lambda writer: self._leases.give_others_back(writer, lease, shard))

        tasks: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            STALL_SECONDS, lambda: tasks.append(asyncio.create_task(free(), name="mails: stall"))
        )
        try:
            yield
        finally:
            timer.cancel()
            await end_tasks(tasks)

    async def _wait_until_allowed(self, lease: ShardLease) -> None:
        """Wait until a mail may be sent, or no further one of the lease is begun."""
        rate_wait = self._rate_waits[lease] = asyncio.create_task(self._rate.wait_until_allowed(), name="mails: rate")
        try:
            await asyncio.wait([rate_wait])
        finally:
            del self._rate_waits[lease]
            await end_tasks([rate_wait])
        if not rate_wait.cancelled():
            rate_wait.result()
