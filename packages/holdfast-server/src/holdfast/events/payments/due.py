"""Row work with the payment processor: rows of a table whose `due_at` has come.

The calls are made without a transaction. If a process is killed or stalls, another process makes the same calls with
the same keys (`kit/background/row_work.py`). Code that has news about a row, such as a message of the processor, sets
`due_at` to now.
"""

import datetime as dt
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import structlog
from prometheus_client import Counter

from holdfast.events.processor.processor import ProcessorUnreachable
from holdfast.events.resources import Database, Steps
from holdfast.events.seats.held_seats import PAYMENTS_CHANNEL
from holdfast.kit.background.leases import LeasedRow, LeaseLost, RowTable
from holdfast.kit.background.row_work import RetryBackoff, TableWork
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.operations.slots import Slots

RETRY_BACKOFF = RetryBackoff(1.0, 300.0)

MAX_CONCURRENT_TRANSACTIONS = 3
"""The most transactions of this work that run at the same time in one process. They may wait for events that others
have locked, and must leave connections for requests."""

PAYMENT_TRANSACTIONS = Bound(
    name="Transactions that store answers of the payment processor",
    service="events",
    total=f"{MAX_CONCURRENT_TRANSACTIONS}",
    tenant="none, in order",
    address="none",
    reserved="-",
    stranger="Others wait for those of its registrations.",
)

HANDLED_COUNT = Counter(
    "holdfast_payment_calls",
    "Handled rows of each table of payment work: done, deferred (the processor could not be reached) or failed.",
    ["of", "how"],
)

log = structlog.get_logger()


class PaymentTable(NamedTuple):
    """Rows of a table that are handled when they are due.

    name              the name in metrics of due work
    handle_row        the handler, `(steps, row)`; returns when the row is due next, None: never. It may run twice for a
                      row
    max_concurrent    the most rows that one process handles at the same time
    """

    name: str
    rows: RowTable
    handle_row: Callable[[Steps, LeasedRow], Awaitable[dt.datetime | None]]
    max_concurrent: int


class ProcessorAccess:
    """What all payment work of a process shares. When the processor wants no calls for a while, all of it pauses."""

    def __init__(self) -> None:
        self.slots = Slots(PAYMENT_TRANSACTIONS, MAX_CONCURRENT_TRANSACTIONS)
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def pause_seconds(self) -> float:
        return self._paused_until - time.monotonic()


def payment_rows(database: Database, tables: Sequence[PaymentTable]) -> list["PaymentWork"]:
    """The work on tables, for one process."""
    access = ProcessorAccess()
    return [PaymentWork(database, table, access) for table in tables]


class PaymentWork(TableWork):
    """Handles the due rows of a table."""

    channels = (PAYMENTS_CHANNEL,)

    def __init__(self, database: Database, payment_table: PaymentTable, access: ProcessorAccess) -> None:
        super().__init__(database, payment_table.rows)
        self.name = payment_table.name
        self.max_concurrent = payment_table.max_concurrent
        self._handle_row = payment_table.handle_row
        self._access = access

    def pause_seconds(self) -> float:
        return self._access.pause_seconds()

    async def handle(self, row: LeasedRow) -> int:
        table, error, due_at = self.table.table, None, None
        pause = RETRY_BACKOFF.pause(row.attempts)
        steps = Steps(self.database, slots=self._access.slots, fence=self.table.fence(row).check)
        try:
            due_at = await self._handle_row(steps, row)
            status = "done"
        except LeaseLost:
            raise
        except ProcessorUnreachable as unreachable:
            error, status = str(unreachable), "deferred"
            pause = max(pause, unreachable.pause)
            self._access.pause(unreachable.pause)
            log.warning("the payment processor cannot be reached", table=table, key=row.key, error=error)
        except Exception as fault:
            error, status = repr(fault), "failed"
            log.error("work with the payment processor failed", table=table, key=row.key, exc_info=fault)
        HANDLED_COUNT.labels(table, status).inc()
        store = partial(self.table.store, row=row, due_at=due_at, error=error, pause=pause)
        await Steps(self.database, slots=self._access.slots).transact(store)
        return 1
