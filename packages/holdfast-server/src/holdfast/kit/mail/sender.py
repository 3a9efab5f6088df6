"""Sends the mails of the outbox: one process at a time, over a few connections.

A mail that the mail server has accepted is stored as sent before another mail is sent on that connection. So a second
copy, with the same Message-ID, is possible only if a process ends between the server's answer and that commit.

The sending process holds a lock in the database (`sender_lock.py`), and checks it immediately before it sends the
content of a mail.

Renders mails of the outbox: checks their addresses, and renders their contents in a subprocess.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import psycopg
import structlog
from psycopg.errors import IdleInTransactionSessionTimeout

from holdfast.kit.background.loops import yield_to_requests
from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.background.subprocess_call import SubprocessCall, SubprocessStartError
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.addresses import NoAddress, envelope_address
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.mail import outbox
from holdfast.kit.mail.message import Envelope, UnwritableMail, header_text
from holdfast.kit.mail.outbox import AttemptResult, HeldMail, Mail, ResultWriter
from holdfast.kit.mail.sender_lock import SenderLock, SenderLockLost, hold_sender_lock
from holdfast.kit.mail.transport import (
    ConnectionLostAtContent,
    MailConnection,
    MailDeferral,
    MailRefusal,
    MailServerUnavailable,
)
from holdfast.kit.postgres.connection_pool import RETRY_SECONDS
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notification

Render = Callable[[Database[Any], Sequence[Mail]], Awaitable[Sequence[Envelope | UnwritableMail | HeldMail | None]]]
"""Renders mails. None for a mail means that it is outdated, and is not sent.

If it raises, it is called again for each mail alone, except for errors that affect all mails: `Problem`,
`SubprocessStartError`.
"""

MAX_CONNECTIONS = 4
RENDER_BATCH_SIZE = 8
"""Mails that are rendered together. At most two batches are ahead of the connections, so contents are recent."""

SENT_MAILS = Bound(
    name="Mails that are being sent",
    service="both",
    total=f"{MAX_CONNECTIONS} connections of one process, which sends for all; {RENDER_BATCH_SIZE} are rendered ahead",
    tenant="one mail, then it is the turn of another organizer or merchant",
    address="none: bounded by what causes mails, such as forms and links to sign in",
    reserved="half of each batch is for mails of no organizer, such as links to sign in; mails to many people at once "
    "go last",
    stranger="One turn, of one mail, before each mail of others. Links to sign in wait for those that its addresses "
    "have requested.",
)

RETRY_BACKOFF = RetryBackoff(1.0, 60.0)
"""How long nothing is sent while the mail server is unreachable."""

MAX_CONNECTION_BREAKS = 3
"""Connection losses at the content of a mail after which the mail is deferred, so that it does not delay others."""

STOP_TIMEOUT_SECONDS = 8
"""Seconds that mails which are being sent may take when the sender is stopped."""

log = structlog.get_logger()


async def run(database: Database[Any], render: Render) -> None:
    """Send mails when they are due and no other process sends, until cancelled."""
    results = ResultWriter(database)
    changed = asyncio.Event()
    with database.listen(outbox.CHANNEL, lambda _: changed.set()):
        try:
            while True:
                # The database logs when it is unreachable, and when it is back.
                with contextlib.suppress(SenderLockLost, psycopg.OperationalError, IdleInTransactionSessionTimeout):
                    # First store earlier results: only then the remaining mails are known.
                    await results.flushed()
                    async with hold_sender_lock(database) as lock:
                        await _Sender(database, render, lock, results, changed).run()
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                    await results.flushed()


class _Sender:
    """Sends mails while this process holds the lock."""

    def __init__(
        self,
        database: Database[Any],
        render: Render,
        lock: SenderLock,
        results: ResultWriter,
        changed: asyncio.Event,
    ) -> None:
        self._database = database
        self._mailer = database.resources.mailer
        self._render = render
        self._lock = lock
        self._results = results
        self._changed = changed
        self._rendered: asyncio.Queue[tuple[Mail, Envelope] | None] = asyncio.Queue(RENDER_BATCH_SIZE)
        self._busy: set[int] = set()
        self._last_owner = ""
        """The owner whose mail was taken last."""
        self._breaks: dict[int, int] = {}
        self._send_turn = asyncio.Lock()
        self._resumes_at = 0.0
        self._failures = 0
        self._stopping = False

    async def run(self) -> None:
        """Send until cancelled, or until the lock is lost: then raise `SenderLockLost`.

        Mails that are being sent at the end are completed, for at most `STOP_TIMEOUT_SECONDS`.
        """
        tasks = [
            asyncio.create_task(work, name=f"mails: {work.__name__}")
            for work in (self._feed(), self._lock.check_regularly())
        ]
        workers = [asyncio.create_task(self._work(), name=f"mails: {number}") for number in range(MAX_CONNECTIONS)]
        try:
            done, _ = await asyncio.wait({*tasks, *workers}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Problem as problem:
            if problem.type is SERVICE_UNAVAILABLE:
                raise SenderLockLost(problem.message) from problem
            raise
        finally:
            outbox.reset_gauges()
            await self._stop(tasks, workers)

    async def _stop(self, tasks: list[asyncio.Task[None]], workers: list[asyncio.Task[None]]) -> None:
        await end_tasks(tasks)
        self._stopping = True
        while not self._rendered.empty():
            self._rendered.get_nowait()
        for _ in workers:
            self._rendered.put_nowait(None)
        await asyncio.wait(workers, timeout=STOP_TIMEOUT_SECONDS)
        await end_tasks(workers)

    async def _feed(self) -> None:
        """Render the due mails, and hand them to the connections."""
        measured = 0.0
        while True:
            if (seconds_left := self._resumes_at - time.monotonic()) > 0:
                await asyncio.sleep(seconds_left)
                continue
            self._changed.clear()
            if time.monotonic() > measured + POLL_SECONDS:
                measured = time.monotonic()
                await self._database.read(outbox.release_due)
                await self._database.read(outbox.update_gauges)
            if not (mails := await self._due_mails()):
                soon = await self._database.read(outbox.seconds_until_next_due)
                # It does not count a mail that became due just before it. So look for due mails once more.
                if not (mails := await self._due_mails()):
                    await wait_for_notification(
                        self._changed, min(POLL_SECONDS, POLL_SECONDS if soon is None else max(soon, 0.01))
                    )
                    continue
            if behind := [mail.id for mail in mails if mail.is_behind]:
                await self._database.read(lambda reader, ids=behind: outbox.hold_behind(reader, ids))
                continue
            self._busy.update(mail.id for mail in mails)
            # Mails at which the connection was lost before go last.
            mails.sort(key=lambda mail: self._breaks.get(mail.id, 0))
            for rendered_mail in await self._render_mails(mails):
                await self._rendered.put(rendered_mail)

    async def _due_mails(self) -> list[Mail]:
        mails = await self._database.read(
            lambda reader: outbox.due_mails(reader, RENDER_BATCH_SIZE, [*self._busy], self._last_owner)
        )
        if mails:
            self._last_owner = mails[-1].owner
        return mails

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
            await self._store_result(
                AttemptResult(mail.id, "failed", f"{outbox.RENDER_ERROR_PREFIX}: {header_text(repr(error))[:500]}")
            )
            return []
        left: list[tuple[Mail, Envelope]] = []
        for mail, result in zip(mails, rendered, strict=True):
            if isinstance(result, Envelope):
                left.append((mail, result))
            elif isinstance(result, HeldMail):
                self._busy.discard(mail.id)
            else:
                await self._store_result(
                    AttemptResult(mail.id, "failed", result.why) if result else AttemptResult(mail.id, "superseded")
                )
        return left

    async def _work(self) -> None:
        """Send mails over one connection, which stays open while there are mails."""
        while not self._stopping and (rendered_mail := await self._rendered.get()):
            async with self._mailer.carrier() as carrier:
                while rendered_mail:
                    async with self._send_turn:  # requests go first
                        await yield_to_requests()
                    await self._send(carrier, *rendered_mail)
                    rendered_mail = await self._next()

    async def _next(self) -> tuple[Mail, Envelope] | None:
        """The next mail; None if there is none for a while, so that the connection is closed."""
        if not self._stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    return await self._rendered.get()
        return None

    async def _send(self, carrier: MailConnection, mail: Mail, envelope: Envelope) -> None:
        if time.monotonic() < self._resumes_at:
            self._busy.discard(mail.id)
            return
        try:
            await carrier.carry(envelope, self._lock.check_held)
        except MailServerUnavailable as error:
            await self._connection_lost(mail, error)
            return
        except MailRefusal as error:
            result = AttemptResult(mail.id, "failed", str(error))
        except MailDeferral as error:
            result = outbox.deferred_result(mail, str(error))
        else:
            result = AttemptResult(mail.id, "sent")
        await self._store_result(result)
        if self._failures:
            log.warning("the mail server is reachable again")
            self._failures = 0

    async def _connection_lost(self, mail: Mail, error: MailServerUnavailable) -> None:
        if self._pause_sending(error):
            await self._database.read(lambda reader: outbox.store_error(reader, mail.id, str(error)))
        breaks = self._breaks.get(mail.id, 0) + isinstance(error, ConnectionLostAtContent)
        if breaks == MAX_CONNECTION_BREAKS:
            await self._store_result(outbox.deferred_result(mail, str(error)))
        else:
            self._breaks[mail.id] = breaks
            self._busy.discard(mail.id)

    async def _store_result(self, result: AttemptResult) -> None:
        """Store the result of an attempt: the end of the mail, or its deferral. Returns after the commit."""
        await self._results.add(result)
        outbox.MAILS.labels(result.outcome or "put off").inc()
        self._breaks.pop(result.id, None)
        self._busy.discard(result.id)
        self._changed.set()

    def _pause_sending(self, error: MailServerUnavailable) -> bool:
        """Pause sending: the mail server is unreachable, or does not accept mails from us.

        Returns whether a pause begins; False during one.
        """
        if time.monotonic() < self._resumes_at:
            return False
        if not self._failures:
            log.warning("mails cannot be sent; trying until they can", reason=str(error))
        self._failures += 1
        self._resumes_at = time.monotonic() + RETRY_BACKOFF.pause(self._failures)
        self._changed.set()
        return True


class MailOrder(Protocol):
    """A mail to be rendered. Its `message_id` has no angle brackets."""

    recipient: str
    message_id: str


OrderT = TypeVar("OrderT", bound=MailOrder)
P = TypeVar("P")

ContentRenderer = Callable[[P], Awaitable[Sequence[bytes]]]
"""Renders the contents of mails, one batch at a time."""

RenderedMails = list[Envelope | UnwritableMail | HeldMail | None]
"""The results of rendering mails, in their order; None for outdated mails, which are not sent."""


async def run_sender(
    database: Database[Any],
    render_contents: Callable[[P], list[bytes]],
    render: Callable[[ContentRenderer[P], Database[Any], Sequence[Mail]], Awaitable[RenderedMails]],
) -> None:
    """Send mails until cancelled. A process that does not know the public URL of the service sends none.

    render_contents    renders a batch; it runs in a subprocess that starts often, so its module imports little
    """
    settings = database.resources.settings
    if not settings.base_url:
        name = settings.variable("base_url")
        log.warning(f"this process sends no mails: set {name}, since mails have links to the service")
        await asyncio.Event().wait()
    async with SubprocessCall(render_contents) as renderer:
        await run(database, partial(render, renderer))


async def render(
    mails: Sequence[Mail],
    orders: Mapping[int, OrderT],
    render_contents: Callable[[list[OrderT]], Awaitable[Sequence[bytes]]],
    *,
    held: Collection[int] = (),
) -> RenderedMails:
    """Render mails together.

    orders    the mails that are not outdated, by id, with recipients as in the outbox
    held      the ids of the mails that may not be sent yet
    """
    rendered: dict[int, Envelope | UnwritableMail | HeldMail] = {id: HeldMail() for id in held}
    addressed: dict[int, OrderT] = {}
    for id, order in orders.items():
        try:
            order.recipient = envelope_address(order.recipient)
            addressed[id] = order
        except NoAddress as error:
            rendered[id] = UnwritableMail(str(error))
    if addressed:
        for (id, order), content in zip(addressed.items(), await render_contents([*addressed.values()]), strict=True):
            rendered[id] = Envelope(order.recipient, order.message_id, content)
    return [rendered.get(mail.id) for mail in mails]
