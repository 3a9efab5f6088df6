"""Row work: rows of a table are handled when they are due, and retried with growing pauses.

A process leases rows, handles them without a transaction, and renews the leases meanwhile. If it is killed or stalls,
the rows are due again when the leases end, and another process handles them. Due rows are found when a notification
comes, when the next row becomes due, and by a poll, in case a notification was lost. Each kind of work is a subclass of
`RowWork`, or of `TableWork` if its rows are leased one by one (`RowTable`).
"""

import asyncio
import contextlib
import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar
from uuid import UUID, uuid4

import structlog
from msgspec import Struct
from prometheus_client import Counter, Gauge

from holdfast.kit.background.leases import LEASE_INTERVAL, LEASE_SECONDS, LeaseFence, LeaseLost, keep_lease, lease_clock
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notification

log = structlog.get_logger()


class LeasedRow(Struct):
    """A row that this process has leased.

    attempts    the number of attempts without success, this one included
    lease_id    the id of the lease
    owner       whose row it is, if rows are leased in turns of owners
    """

    key: Any
    attempts: int
    lease_id: UUID | int
    owner: int = 0


class RowTable(NamedTuple):
    """Rows of a table that are leased when they are due, and the statements for it.

    key               the primary key
    condition         which rows of the table are meant
    order             the order in which rows are leased
    due_at            the column that says when a row is due, or until when it is leased; null: never
    attempts          the column that counts the leases since the last success
    lease_id          the column with the id of the lease; None: the number of attempts, which never falls, is the id
    lease_interval    SQL: how long a row is leased
    owner             SQL: the id of the owner of a row, for leases in turns
    """

    table: LiteralString
    key: LiteralString
    condition: LiteralString = "true"
    order: LiteralString = "due_at"
    due_at: LiteralString = "due_at"
    attempts: LiteralString = "attempts"
    lease_id: LiteralString | None = "lease_id"
    lease_interval: LiteralString = LEASE_INTERVAL
    owner: LiteralString = "0"

    async def lease_due(
        self, tx: Tx[Any], limit: int, excluded_keys: Sequence[Any] = (), after_owner: int | None = None
    ) -> list[LeasedRow]:
        """Lease due rows that no other transaction has locked, at most `limit`.

        after_owner    only rows of owners with greater ids; None: of all
        """
        new_id: LiteralString = f", {self.lease_id} = %(lease_id)s" if self.lease_id else ""
        of_owners: LiteralString = "true" if after_owner is None else f"{self.owner} > %(after_owner)s"
        return await tx.rows(
            LeasedRow,
            f"""
            update {self.table}
               set {self.due_at} = clock_timestamp() + {self.lease_interval},
                   {self.attempts} = {self.attempts} + 1{new_id}
             where {self.key} = any(array(
                    select {self.key} from {self.table}
                     where {self.due_at} <= now() and {self.condition} and {of_owners}
                       and {self.key} <> all(%(excluded_keys)s)
                     order by {self.order} limit %(limit)s for no key update skip locked))
            returning {self.key} as key, {self.attempts} as attempts, {self.lease_id or self.attempts} as lease_id,
                      {self.owner} as owner
            """,
            {
                "seconds": LEASE_SECONDS,
                "lease_id": uuid4(),
                "limit": limit,
                "excluded_keys": [*excluded_keys],
                "after_owner": after_owner,
            },
        )

    def fence(self, row: LeasedRow) -> LeaseFence:
        """Renews the lease of a row, and checks it."""
        lease = self.lease_id or self.attempts
        return LeaseFence(self.table, self.key, [row.key], row.lease_id, due_at=self.due_at, lease=lease)

    async def seconds_until_due(self, reader: Reader[Any], excluded_keys: Sequence[Any] = ()) -> float | None:
        """Seconds until the next row is due; negative if one is overdue; None if there is none."""
        return await reader.value(
            f"""
            select extract(epoch from min({self.due_at}) - clock_timestamp())::float8 from {self.table}
             where {self.due_at} is not null and {self.condition} and {self.key} <> all(%(excluded_keys)s)
            """,
            {"excluded_keys": [*excluded_keys]},
        )

    async def store(
        self, tx: Tx[Any], row: LeasedRow, due_at: dt.datetime | None, error: str | None, pause: float
    ) -> None:
        """Store the result of handling a row, unless another process has leased it. The table has a column `error`.

        due_at    when the row is due next; None: never
        error     why it failed; None: it did not
        pause     seconds until a failed row is due again

        Leasing set `due_at` to the end of the lease. If somebody changed it meanwhile (to an earlier time, or to null:
        never), that is kept. After a success `error` still has the text of the last failure.
        """
        assert self.lease_id, "the result of a table without a column for the lease is stored by its own statement"
        await tx.run(
            f"""
            update {self.table}
               set {self.due_at} = case when {self.due_at} is null or {self.due_at} <= clock_timestamp()
                                        then {self.due_at}
                                        when %(error)s::text is null then %(due_at)s::timestamptz
                                        else now() + %(pause)s * interval '1 second' end,
                   {self.lease_id} = null,
                   {self.attempts} = case when %(error)s::text is null then 0 else {self.attempts} end,
                   error = coalesce(left(%(error)s, 1000), error)
             where {self.key} = %(key)s and {self.lease_id} = %(lease_id)s
            """,
            {"key": row.key, "lease_id": row.lease_id, "due_at": due_at, "error": error, "pause": pause},
        )


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
        """Seconds until the retry after so many attempts."""
        return min(self.first * 2 ** min(attempts - 1, 20), self.longest)


class RowWork(ABC, Generic[Row]):
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
    async def lease(self, limit: int, excluded: Sequence[Any], *, scan_all: bool) -> Sequence[Row]:
        """Lease due rows, at most `limit`.

        excluded    what `exclusions` returned
        scan_all    look at all rows, not only at those that notifications named
        """

    @abstractmethod
    async def renew(self, row: Row) -> bool:
        """Renew the lease of a row. Returns False if another process has leased it."""

    @abstractmethod
    async def handle(self, row: Row) -> int:
        """Handle a row and store the result. Returns the number of rows. May raise `LeaseLost`."""

    @abstractmethod
    async def seconds_until_due(self, reader: Reader[Any], excluded: Sequence[Any]) -> float | None:
        """Seconds until the next row is due; negative if one is overdue; None if there is none."""

    def exclusions(self, rows: Sequence[Row]) -> Sequence[Any]:
        """The owners (ids of tenants or of rows) whose rows must not be leased now.

        rows    those that this process handles
        """
        return ()

    def pause_seconds(self) -> float:
        """Seconds for which no row is leased. 0 or less: no pause."""
        return 0.0

    def notified(self, payload: str) -> None:
        """Note the payload of a notification."""


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

    def exclusions(self, rows: Sequence[LeasedRow]) -> Sequence[Any]:
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
        rows = await self._work.lease(free, self._exclusions(), scan_all=scan_all)
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
        OVERDUE_SECONDS.labels(self._work.name).set(max(0.0, -(soon or 0.0)))
        if len(self._tasks) == self._work.max_concurrent:
            return POLL_SECONDS  # the end of a task sets `changed`
        if excluded := self._exclusions():
            soon = await self._next_due(excluded)
        pause = self._scanned_at + POLL_SECONDS - self._clock()
        if soon is not None:
            pause = min(pause, LOCKED_RETRY_SECONDS if leased_nothing and soon < -LOCKED_RETRY_SECONDS else soon)
        return max(pause, MIN_PAUSE_SECONDS)

    async def _next_due(self, excluded: Sequence[Any] = ()) -> float | None:
        return await self._database.read(partial(self._work.seconds_until_due, excluded=excluded))

    def _exclusions(self) -> Sequence[Any]:
        return self._work.exclusions([*self._tasks.values()])


async def handle_all(work: RowWork[Any]) -> int:
    """Handle all rows that are due now. Returns how many."""
    handled, leased_at = 0, lease_clock()
    while rows := await work.lease(work.max_concurrent, (), scan_all=True):
        handled += sum(await asyncio.gather(*(_handle(work, row, leased_at) for row in rows)))
        leased_at = lease_clock()
    return handled


async def _handle(work: RowWork[Row], row: Row, leased_at: float) -> int:
    """Handle a row that was leased at `leased_at`, unless the lease is lost meanwhile."""
    try:
        async with keep_lease(partial(work.renew, row), leased_at):
            return await work.handle(row)
    except LeaseLost:
        LOST_LEASES.labels(work.name).inc()
        log.warning("another process handles a row that this one had leased", work=work.name)
        return 1
