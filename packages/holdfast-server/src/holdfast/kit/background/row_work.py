"""Row work: rows of a table are handled when they are due, and retried with growing pauses.

A process leases rows, handles them without a transaction, and renews the leases meanwhile. If it is killed or stalls,
the rows are due again when the leases end, and another process handles them. Due rows are found when a notice
comes, when the next row becomes due, and by a poll, in case a notice was lost. Each kind of work is a subclass of
`RowWork`, or of `TableWork` if its rows are leased one by one (`RowTable`).
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from holdfast.kit.background.leases import LeasedRow, LeaseLost, RowTable, keep_lease, lease_clock
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.postgres.database import Database, Reader
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notice

log = structlog.get_logger()

Row = TypeVar("Row")

MIN_PAUSE_SECONDS = 0.01

LOCKED_RETRY_SECONDS = 0.25
"""Seconds until due rows that others have locked are tried again."""

OVERDUE_SECONDS = Gauge(
    "holdfast_due_work_overdue_seconds",
    "How long the oldest due row has been overdue.",
    ["work"],
    multiprocess_mode="mostrecent",
)
LOST_LEASES = Counter("holdfast_due_work_lost", "Leases that a process lost while it handled the row.", ["work"])


class RetryBackoff(NamedTuple):
    """Pauses before retries, in seconds.

    first      the pause after the first failure, doubled each time, never above `longest`
    """

    first: float
    longest: float

    def pause(self, attempts: int) -> float:
        """Seconds until the retry after a number of attempts."""
        return min(self.first * 2 ** min(attempts - 1, 20), self.longest)


class RowWork(ABC, Generic[Row]):
    """Work on the rows of a table.

    name               the name in metrics and logs
    channels           the channels on which changes of the rows are announced
    max_concurrent     the most rows that one process handles at the same time
    collect_seconds    seconds in which notices are collected, so that one lease serves many of them
    wake               an event; when it is set, due rows are leased at once
    """

    name: str
    channels: Sequence[str]
    max_concurrent: int
    collect_seconds: float = 0.0

    def __init__(self) -> None:
        self.wake = asyncio.Event()

    @abstractmethod
    async def lease(self, limit: int, excluded: Sequence[Any], *, scan_all: bool) -> Sequence[Row]:
        """Lease due rows, at most `limit`.

        excluded    what `busy_keys` returned: ids of rows, or of tenants
        scan_all    look at all rows, not only at those that notices named
        """

    @abstractmethod
    async def renew(self, row: Row) -> bool:
        """Renew the lease of a row. Returns False if another process has leased it."""

    @abstractmethod
    async def handle(self, row: Row) -> int:
        """Handle a row and store the result. May raise `LeaseLost`.

        Returns how many items were handled: 1, or the number of mails of a shard.
        """

    @abstractmethod
    async def seconds_until_due(self, reader: Reader[Any], excluded: Sequence[Any]) -> float | None:
        """Seconds until the next row is due; negative if one is overdue; None if there is none."""

    def busy_keys(self, rows: Sequence[Row]) -> Sequence[Any]:
        """What must not be leased now: ids of rows, or of the tenants of rows.

        rows    the rows that this process handles now
        """
        return ()

    def pause_seconds(self) -> float:
        """Seconds for which no row is leased. 0 or less: no pause."""
        return 0.0

    def on_notice(self, payload: str) -> None:
        """Note the payload of a notice."""


class TableWork(RowWork[LeasedRow]):
    """Work on the rows of a `RowTable`. A row that becomes due while it is handled is handled again afterwards."""

    def __init__(self, database: Database[Any], table: RowTable) -> None:
        super().__init__()
        self.database = database
        self.table = table

    async def lease(self, limit: int, excluded: Sequence[Any], *, scan_all: bool) -> Sequence[LeasedRow]:
        return await self.database.transact(partial(self.table.lease_due, limit=limit, excluded_keys=excluded))

    async def renew(self, row: LeasedRow) -> bool:
        return await self.database.transact(self.table.fence(row).renew)

    async def seconds_until_due(self, reader: Reader[Any], excluded: Sequence[Any]) -> float | None:
        return await self.table.seconds_until_due(reader, excluded)

    def busy_keys(self, rows: Sequence[LeasedRow]) -> Sequence[Any]:
        return [row.key for row in rows]


async def run(database: Database[Any], work: RowWork[Any]) -> None:
    """Handle due rows, until cancelled."""
    await _Worker(database, work).run()


class _Worker(Generic[Row]):
    """Handles the due rows of one kind of work in one process."""

    def __init__(self, database: Database[Any], work: RowWork[Row]) -> None:
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
                listening.enter_context(self._database.listen(channel, self._receive_notice))
            try:
                while True:
                    work.wake.clear()
                    pause_seconds = work.pause_seconds()
                    rows = await self._lease() if pause_seconds <= 0 else ()
                    pause = max(await self._pause(leased_nothing=not rows), min(pause_seconds, POLL_SECONDS))
                    wakes_at = self._clock() + pause
                    await wait_for_notice(work.wake, pause)
                    if work.collect_seconds:
                        await asyncio.sleep(work.collect_seconds)
                    self._is_scan_due = self._is_scan_due or self._clock() >= wakes_at
            finally:
                await end_tasks(self._tasks)

    def _receive_notice(self, payload: str) -> None:
        if payload:
            self._work.on_notice(payload)
        else:
            self._is_scan_due = True  # any row may have changed
        self._work.wake.set()

    async def _lease(self) -> Sequence[Row]:
        """Lease as many rows as this process has room for, and begin to handle them."""
        free = self._work.max_concurrent - len(self._tasks)
        if not free:
            return ()
        leased_at = lease_clock()
        scan_all, self._is_scan_due = self._is_scan_due, False
        rows = await self._work.lease(free, self._busy_keys(), scan_all=scan_all)
        if len(rows) == free:
            self._is_scan_due = self._is_scan_due or scan_all  # more rows may be due
        elif scan_all:
            self._scanned_at = leased_at
        for row in rows:
            task = asyncio.create_task(handle_leased(self._work, row, leased_at), name=self._work.name)
            self._tasks[task] = row
            task.add_done_callback(self._end_task)
        return rows

    def _end_task(self, task: asyncio.Task[int]) -> None:
        del self._tasks[task]
        self._work.wake.set()
        if not task.cancelled() and (error := task.exception()):
            log.warning("the result of row work is not stored", work=self._work.name, exc_info=error)

    async def _pause(self, *, leased_nothing: bool) -> float:
        """Seconds until rows are leased again, unless `wake` is set before."""
        seconds = await self._seconds_until_due()
        OVERDUE_SECONDS.labels(self._work.name).set(max(0.0, -(seconds or 0.0)))
        if len(self._tasks) == self._work.max_concurrent:
            return POLL_SECONDS  # the end of a task sets `wake`
        if excluded := self._busy_keys():
            seconds = await self._seconds_until_due(excluded)
        pause = self._scanned_at + POLL_SECONDS - self._clock()
        if seconds is not None:
            # Rows that are overdue and could not be leased are locked by others.
            are_locked = leased_nothing and seconds < -LOCKED_RETRY_SECONDS
            pause = min(pause, LOCKED_RETRY_SECONDS if are_locked else seconds)
        return max(pause, MIN_PAUSE_SECONDS)

    async def _seconds_until_due(self, excluded: Sequence[Any] = ()) -> float | None:
        return await self._database.read(partial(self._work.seconds_until_due, excluded=excluded))

    def _busy_keys(self) -> Sequence[Any]:
        return self._work.busy_keys([*self._tasks.values()])


async def handle_leased(work: RowWork[Row], row: Row, leased_at: float) -> int:
    """Handle a row that was leased at `leased_at`, unless the lease is lost meanwhile."""
    try:
        async with keep_lease(partial(work.renew, row), leased_at):
            return await work.handle(row)
    except LeaseLost:
        LOST_LEASES.labels(work.name).inc()
        log.warning("the lease of a row was lost, so another process handles it", work=work.name)
        return 1
