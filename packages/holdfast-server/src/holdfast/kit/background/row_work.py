"""Due work: rows of a table are handled when they are due, and retried with growing pauses.

A process leases rows, handles them without a transaction, and renews the leases meanwhile. If it is
killed or stalls, the rows are due again when the leases end, and another process handles them. Due rows are found when
a notification comes, when the next row becomes due, and by a poll, in case a notification was lost.

Each kind of work is a subclass of `DueWork`.

Leases: a process leases rows that are due, and no other process leases them while it works on them.

A lease ends `LEASE_SECONDS` after its last renewal. So another process soon leases the rows of a killed process, and
work may take as long as it needs. Each lease has an id, which is stored in the row. A process may stall, and lose its
rows to another process; when it wakes, two things stop it:

* its work is cancelled before its next step (`keep_lease`), so it makes no more calls;
* each of its transactions checks at the end that the row still has the id of the lease (`LeaseFence`), and is rolled
  back if not.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar
from uuid import UUID

import structlog
from prometheus_client import Counter, Gauge

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notification

LEASE_SECONDS = 10.0
"""Seconds until another process may lease a row whose lease is not renewed, by the clock of the database."""

RENEW_SECONDS = 2.5
"""Seconds between two renewals: three may fail."""

log = structlog.get_logger()


class LeaseLost(Exception):
    """The lease has ended, or another process has leased the row: this process must stop its work on it."""


def lease_clock() -> float:
    """The time of the clock that measures leases in this process. Read it before the row is leased."""
    return asyncio.get_running_loop().time()


@contextlib.asynccontextmanager
async def keep_lease(renew: Callable[[], Awaitable[bool]], leased_at: float) -> AsyncGenerator[None]:
    """Renew a lease while the block runs. The block is cancelled, and raises `LeaseLost`, when the lease is lost.

    renew        renews the lease in the database. Returns False if it is lost
    leased_at    what `lease_clock()` returned before the row was leased
    """
    limit = asyncio.timeout_at(leased_at + LEASE_SECONDS)
    try:
        async with limit:
            renewing = asyncio.create_task(_renew(renew, limit), name="lease")
            try:
                yield
            finally:
                await end_tasks([renewing])
    except TimeoutError as error:
        if limit.expired():
            raise LeaseLost from error
        raise


async def _renew(renew: Callable[[], Awaitable[bool]], limit: asyncio.Timeout) -> None:
    """Move the limit after each renewal. If the lease is lost, move it into the past."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        began = lease_clock()
        try:
            is_held = await renew()
        except Problem:
            continue  # the database is unreachable, and logs that; the limit stays
        if limit.expired():
            return
        limit.reschedule(began + LEASE_SECONDS if is_held else began)


class LeaseFence:
    """Checks, in the last statement of a transaction, that rows still have the lease of this process.

    Deleted rows do not matter: no other process can work on them.
    """

    def __init__(self, table: LiteralString, key: LiteralString, keys: Sequence[int], lease_id: UUID) -> None:
        self._table: LiteralString = table
        self._key: LiteralString = key
        self._parameters = {"keys": list(keys), "lease_id": lease_id}

    async def check(self, tx: Tx[Any]) -> None:
        """Raises `LeaseLost`. Until the transaction ends, no other process can lease the rows."""
        rows = await tx.tuples(
            f"""
            select lease_id is not distinct from %(lease_id)s from {self._table}
             where {self._key} = any(%(keys)s) order by {self._key} for share
            """,
            self._parameters,
        )
        if not all(is_held for (is_held,) in rows):
            raise LeaseLost

    async def renew(self, tx: Tx[Any]) -> bool:
        """Renew the lease, unless it was given back. Returns False if another process has leased a row.

        A row whose `due_at` has passed, because it must be checked again, stays due.
        """
        await tx.run(
            f"""
            update {self._table} set due_at = clock_timestamp() + %(seconds)s * interval '1 second'
             where {self._key} = any(array(
                   select {self._key} from {self._table}
                    where {self._key} = any(%(keys)s) and lease_id = %(lease_id)s and due_at > clock_timestamp()
                    order by {self._key} for no key update skip locked))
            """,
            {**self._parameters, "seconds": LEASE_SECONDS},
        )
        return not await tx.value(
            f"""
            select exists (select from {self._table}
                            where {self._key} = any(%(keys)s) and lease_id <> %(lease_id)s)
            """,
            self._parameters,
        )


Row = TypeVar("Row")

MIN_PAUSE_SECONDS = 0.01

LOCKED_RETRY_SECONDS = 0.25
"""Seconds until due rows that others have locked are tried again."""

OVERDUE = Gauge(
    "holdfast_due_work_overdue_seconds",
    "How long the oldest due row has been overdue.",
    ["work"],
    multiprocess_mode="mostrecent",
)
LOST = Counter("holdfast_due_work_lost", "Leases that a process lost while it handled the row.", ["work"])


class RetryBackoff(NamedTuple):
    """Pauses before retries, in seconds.

    first      the pause after the first failure, doubled each time, never above `longest`
    """

    first: float
    longest: float

    def pause(self, attempts: int) -> float:
        """Seconds until the retry after so many attempts."""
        return min(self.first * 2 ** min(attempts - 1, 20), self.longest)


class DueWork(ABC, Generic[Row]):
    """Work on the rows of a table.

    name               the name in metrics and logs
    channels           the channels on which changes of the rows are announced
    max_concurrent     the most rows that one process handles at the same time
    collect_seconds    seconds in which notifications are collected, so that one lease serves many of them
    changed            set it to have due rows looked for at once
    """

    name: str
    channels: Sequence[str]
    max_concurrent: int
    collect_seconds: float = 0.0

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    @abstractmethod
    async def lease(self, limit: int, excluded_owners: Sequence[int], *, scan_all: bool) -> Sequence[Row]:
        """Lease due rows, at most `limit`.

        excluded_owners    what `excluded_owners` returned
        scan_all           look at all rows, not only at those that notifications named
        """

    @abstractmethod
    async def renew(self, row: Row) -> bool:
        """Renew the lease of a row. Returns False if another process has leased it."""

    @abstractmethod
    async def handle(self, row: Row) -> int:
        """Handle a row and store the result. Returns the number of rows. May raise `LeaseLost`."""

    @abstractmethod
    async def next_due(self, reader: Reader[Any], excluded_owners: Sequence[int]) -> float | None:
        """Seconds until the next row is due; negative if one is overdue; None if there is none."""

    def excluded_owners(self, rows: Sequence[Row]) -> Sequence[int]:
        """The owners (ids of tenants or of rows) whose rows must not be leased now.

        rows    those that this process handles
        """
        return ()

    def pause_seconds(self) -> float:
        """Seconds for which no row is leased. 0 or less: no pause."""
        return 0.0

    def notified(self, payload: str) -> None:
        """Note the payload of a notification."""


async def run(database: Database[Any], work: DueWork[Any]) -> None:
    """Handle due rows, until cancelled."""
    await _Worker(database, work).run()


class _Worker(Generic[Row]):
    """Handles the due rows of one kind of work in one process."""

    def __init__(self, database: Database[Any], work: DueWork[Row]) -> None:
        self._database = database
        self._work = work
        self._tasks: dict[asyncio.Task[int], Row] = {}
        self._clock = asyncio.get_running_loop().time
        self._is_scan_due = True
        self._scanned_at = self._clock()

    async def run(self) -> None:
        work = self._work
        with contextlib.ExitStack() as listening:
            for channel in work.channels:
                listening.enter_context(self._database.listen(channel, self._notified))
            try:
                while True:
                    work.changed.clear()
                    pause_seconds = work.pause_seconds()
                    rows = await self._lease() if pause_seconds <= 0 else ()
                    pause = max(await self._pause(leased_nothing=not rows), min(pause_seconds, POLL_SECONDS))
                    wakes_at = self._clock() + pause
                    await wait_for_notification(work.changed, pause)
                    if work.collect_seconds:
                        await asyncio.sleep(work.collect_seconds)
                    self._is_scan_due = self._is_scan_due or self._clock() >= wakes_at
            finally:
                await end_tasks(self._tasks)

    def _notified(self, payload: str) -> None:
        if payload:
            self._work.notified(payload)
        else:
            self._is_scan_due = True  # any row may have changed
        self._work.changed.set()

    async def _lease(self) -> Sequence[Row]:
        """Lease as many rows as there are free places, and begin to handle them."""
        free = self._work.max_concurrent - len(self._tasks)
        if not free:
            return ()
        leased_at = lease_clock()
        scan_all, self._is_scan_due = self._is_scan_due, False
        rows = await self._work.lease(free, self._excluded_owners(), scan_all=scan_all)
        if len(rows) == free:
            self._is_scan_due = self._is_scan_due or scan_all  # more rows may be due
        elif scan_all:
            self._scanned_at = leased_at
        for row in rows:
            task = asyncio.create_task(_handle(self._work, row, leased_at), name=self._work.name)
            self._tasks[task] = row
            task.add_done_callback(self._ended)
        return rows

    def _ended(self, task: asyncio.Task[int]) -> None:
        del self._tasks[task]
        self._work.changed.set()
        if not task.cancelled() and (error := task.exception()):
            log.warning("the result of due work is not stored", work=self._work.name, exc_info=error)

    async def _pause(self, *, leased_nothing: bool) -> float:
        """Seconds until rows are leased again, unless `changed` is set before. `leased_nothing`: no row was leased."""
        soon = await self._next_due()
        OVERDUE.labels(self._work.name).set(max(0.0, -(soon or 0.0)))
        if len(self._tasks) == self._work.max_concurrent:
            return POLL_SECONDS  # the end of a task sets `changed`
        if excluded_owners := self._excluded_owners():
            soon = await self._next_due(excluded_owners)
        pause = self._scanned_at + POLL_SECONDS - self._clock()
        if soon is not None:
            pause = min(pause, LOCKED_RETRY_SECONDS if leased_nothing and soon < -LOCKED_RETRY_SECONDS else soon)
        return max(pause, MIN_PAUSE_SECONDS)

    async def _next_due(self, excluded_owners: Sequence[int] = ()) -> float | None:
        return await self._database.read(partial(self._work.next_due, excluded_owners=excluded_owners))

    def _excluded_owners(self) -> Sequence[int]:
        return self._work.excluded_owners([*self._tasks.values()])


async def handle_all(work: DueWork[Any]) -> int:
    """Handle all rows that are due now. Returns how many."""
    handled, leased_at = 0, lease_clock()
    while rows := await work.lease(work.max_concurrent, (), scan_all=True):
        handled += sum(await asyncio.gather(*(_handle(work, row, leased_at) for row in rows)))
        leased_at = lease_clock()
    return handled


async def _handle(work: DueWork[Row], row: Row, leased_at: float) -> int:
    """Handle a row that was leased at `leased_at`, unless the lease is lost meanwhile."""
    try:
        async with keep_lease(partial(work.renew, row), leased_at):
            return await work.handle(row)
    except LeaseLost:
        LOST.labels(work.name).inc()
        log.warning("another process handles a row that this one had leased", work=work.name)
        return 1
