"""Due work with the payment processor: rows of a table whose `due_at` has come.

The calls are made without a transaction. If a process is killed or stalls, another process makes the same calls with
the same keys (`kit/background/row_work.py`). Code that has news about a row, such as a message of the processor, sets
`due_at` to now.
"""

import asyncio
import datetime as dt
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import LiteralString, NamedTuple
from uuid import UUID, uuid4

import structlog
from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.processor.processor import ProcessorUnreachable
from holdfast.events.resources import Database, Reader, Steps, Tx
from holdfast.events.seats.seats import PAYMENTS_CHANNEL
from holdfast.kit.background import row_work
from holdfast.kit.background.row_work import DueWork, LeaseFence, LeaseLost, RetryBackoff
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.running.slots import Slots

RETRY_BACKOFF = RetryBackoff(1.0, 300.0)

MAX_CONCURRENT_TRANSACTIONS = 3
"""The most transactions of this work that run at the same time in one process. They may wait for events that others
have locked, and must leave connections for requests."""

PAYMENT_TRANSACTIONS = Bound(
    name="Transactions that store what the payment processor answered",
    service="events",
    total=f"{MAX_CONCURRENT_TRANSACTIONS} at a time",
    tenant="in the order in which they are due",
    address="none: only registrations with a price cause them",
    reserved="all of it is for payments",
    stranger="One due call for each registration with a price, which limits of forms bound.",
)

HANDLED_COUNT = Counter(
    "holdfast_payment_calls",
    "Handled rows of each table of payment work: done, put off (the processor could not be reached) or failed.",
    ["of", "how"],
)

log = structlog.get_logger()


class LeasedRow(Struct):
    """A row that this process has leased.

    attempts    the number of attempts without success, this one included
    lease_id    the id of the lease
    """

    key: int
    attempts: int
    lease_id: UUID


class DueTable(NamedTuple):
    """Rows of a table that are handled when they are due.

    key_column    the primary key of the table
    handle_row    the handler, `(steps, row)`; returns when the row is due next, None: never. It may run twice for a row
    at_once       the most rows that one process handles at the same time
    condition     which rows of the table are meant
    order         the order in which rows are leased
    name          the name in metrics
    """

    table: LiteralString
    key_column: LiteralString
    handle_row: Callable[[Steps, LeasedRow], Awaitable[dt.datetime | None]]
    at_once: int
    condition: LiteralString = "true"
    order: LiteralString = "due_at"
    name: LiteralString = ""


class ProcessorAccess:
    """What all payment work of a process shares. When the processor wants no calls for a while, all of it pauses."""

    def __init__(self) -> None:
        self.slots = Slots(PAYMENT_TRANSACTIONS, MAX_CONCURRENT_TRANSACTIONS)
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def pause_seconds(self) -> float:
        return self._paused_until - time.monotonic()


async def run(database: Database, due_tables: Sequence[DueTable]) -> None:
    """Handle due rows, until cancelled."""
    access = ProcessorAccess()
    async with asyncio.TaskGroup() as group:
        for due_table in due_tables:
            work = PaymentWork(database, due_table, access)
            group.create_task(row_work.run(database, work), name=f"payments: {due_table.table}")


async def handle_all(database: Database, due_table: DueTable) -> int:
    """Handle every row that is due now. Returns the number of rows."""
    return await row_work.handle_all(PaymentWork(database, due_table, ProcessorAccess()))


class PaymentWork(DueWork[LeasedRow]):
    """Handles the due rows of a table."""

    channels = (PAYMENTS_CHANNEL,)

    def __init__(self, database: Database, due_table: DueTable, access: ProcessorAccess) -> None:
        super().__init__()
        self.name = due_table.name
        self.max_concurrent = due_table.at_once
        self._database = database
        self._due_table = due_table
        self._access = access

    async def lease(self, limit: int, excluded_owners: Sequence[int], *, scan_all: bool) -> list[LeasedRow]:
        lease = partial(_lease, due_table=self._due_table, limit=limit, excluded_keys=excluded_owners)
        return await self._database.transact(lease)

    async def renew(self, row: LeasedRow) -> bool:
        return await self._database.transact(self._fence(row).renew)

    async def next_due(self, reader: Reader, excluded_owners: Sequence[int]) -> float | None:
        return await reader.value(
            f"select extract(epoch from min(due_at) - clock_timestamp())::float8 from {self._due_table.table}"
            f" where due_at is not null and {self._due_table.condition}"
            f"   and {self._due_table.key_column} <> all(%(excluded_keys)s)",
            {"excluded_keys": [*excluded_owners]},
        )

    def excluded_owners(self, rows: Sequence[LeasedRow]) -> Sequence[int]:
        """The rows that this process handles. One that becomes due meanwhile is handled again afterwards."""
        return [row.key for row in rows]

    def pause_seconds(self) -> float:
        return self._access.pause_seconds()

    async def handle(self, row: LeasedRow) -> int:
        due_table, error, due_at = self._due_table, None, None
        pause = RETRY_BACKOFF.pause(row.attempts)
        steps = Steps(self._database, slots=self._access.slots, fence=self._fence(row).check)
        try:
            due_at = await due_table.handle_row(steps, row)
            status = "done"
        except LeaseLost:
            raise
        except ProcessorUnreachable as unreachable:
            error, status = str(unreachable), "put off"
            pause = max(pause, unreachable.pause)
            self._access.pause(unreachable.pause)
            log.warning("the payment processor cannot be reached", table=due_table.table, key=row.key, error=error)
        except Exception as fault:
            error, status = repr(fault), "failed"
            log.error("work with the payment processor failed", table=due_table.table, key=row.key, exc_info=fault)
        HANDLED_COUNT.labels(due_table.table, status).inc()
        store = partial(_store_result, due_table=due_table, row=row, due_at=due_at, error=error, pause=pause)
        await Steps(self._database, slots=self._access.slots).transact(store)
        return 1

    def _fence(self, row: LeasedRow) -> LeaseFence:
        return LeaseFence(self._due_table.table, self._due_table.key_column, [row.key], row.lease_id)


async def _lease(tx: Tx, *, due_table: DueTable, limit: int, excluded_keys: Sequence[int]) -> list[LeasedRow]:
    return await tx.rows(
        LeasedRow,
        f"""
        update {due_table.table}
           set due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1,
               lease_id = %(lease_id)s
         where {due_table.key_column} = any(array(
                select {due_table.key_column} from {due_table.table} where due_at <= now() and {due_table.condition}
                   and {due_table.key_column} <> all(%(excluded_keys)s)
                 order by {due_table.order} limit %(limit)s for update skip locked))
        returning {due_table.key_column} as key, attempts, lease_id
        """,
        {
            "seconds": row_work.LEASE_SECONDS,
            "lease_id": uuid4(),
            "limit": limit,
            "excluded_keys": [*excluded_keys],
        },
    )


async def _store_result(
    tx: Tx, *, due_table: DueTable, row: LeasedRow, due_at: dt.datetime | None, error: str | None, pause: float
) -> None:
    """Store the result of handling a row.

    Leasing set `due_at` to the end of the lease. If somebody changed it meanwhile (to an earlier time, or to null:
    never), that is kept. After a success `error` still has the text of the last failure.
    """
    await tx.run(
        f"""
        update {due_table.table}
           set due_at = case when due_at is null or due_at <= clock_timestamp() then due_at
                             when %(error)s::text is null then %(due_at)s::timestamptz
                             else now() + %(pause)s * interval '1 second' end,
               lease_id = null, attempts = case when %(error)s::text is null then 0 else attempts end,
               error = coalesce(left(%(error)s, 1000), error)
         where {due_table.key_column} = %(key)s and lease_id = %(lease_id)s
        """,
        {"key": row.key, "lease_id": row.lease_id, "due_at": due_at, "error": error, "pause": pause},
    )
