"""Work with the payment processor that is due: rows of a table whose `due_at` has come.

A process takes rows by moving `due_at` some minutes ahead, and commits that. Then it makes the calls, without a
transaction. If it is killed, the rows are due again after these minutes, and another process makes the same calls with
the same keys. Whoever wants a row to be looked at, such as a message of the processor, sets `due_at` to now.
"""

import asyncio
import datetime as dt
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import LiteralString, NamedTuple

import structlog
from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.processor.processor import Unreachable
from holdfast.events.registrations.opening import CHANNEL
from holdfast.events.resources import Database, Reader, Steps, Tx
from holdfast.kit import steps
from holdfast.kit.ending import end
from holdfast.kit.limits import Slots
from holdfast.kit.notifications import notified

LEASE_SECONDS = 120
"""How long a process has for a row: longer than its calls may take."""

PATROL_SECONDS = 5
PAUSES = (1.0, 300.0)
"""Seconds until a row is tried again after a failure, at first and at most; they double."""

TRANSACTIONS = 3
"""How many transactions of this work one process runs at once: they may wait for events that others have locked, and
must leave connections for requests."""

ATTENDED = Counter("holdfast_payment_calls", "Work with the payment processor that was done or put off.", ["of", "how"])

log = structlog.get_logger()


class Taken(Struct):
    """A row that this process attends to.

    attempts    how often that was tried without success, with this time
    until       until when nobody else attends to it
    """

    key: int
    attempts: int
    until: dt.datetime


class Line(NamedTuple):
    """Rows of a table that are attended to when they are due.

    key       its primary key
    attend    `(steps, taken)`; returns when the row is due next, None for never. It may be called twice for one row.
    at_once   the most rows that one process attends to at the same time
    rows      which rows of the table, as a condition
    order     in which order they are taken
    """

    table: LiteralString
    key: LiteralString
    attend: Callable[[Steps, Taken], Awaitable[dt.datetime | None]]
    at_once: int
    rows: LiteralString = "true"
    order: LiteralString = "due_at"


async def run(database: Database, lines: Sequence[Line]) -> None:
    """Attend to what is due, until cancelled."""
    office = _Office(database)
    async with asyncio.TaskGroup() as group:
        for each in lines:
            group.create_task(office.run(each), name=f"payments: {each.table}")


async def attend_all(database: Database, line: Line) -> int:
    """Attend to everything that is due now. Returns how many rows that were."""
    office = _Office(database)
    attended = 0
    while taken := await office.take(line, line.at_once):
        await asyncio.gather(*(office.attend(line, row) for row in taken))
        attended += len(taken)
    return attended


class _Office:
    """The work of one process with the processor. When the processor wants no calls for a while, all lines rest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._steps = steps.Steps(database, turns=Slots(TRANSACTIONS))
        self._rests_until = 0.0

    async def run(self, line: Line) -> None:
        """Attend to what is due in a line, until cancelled."""
        changed = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def ended(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            changed.set()
            if not task.cancelled() and (error := task.exception()):
                log.warning("what came of work with the payment processor is not stored", exc_info=error)

        with self._database.listen(CHANNEL, lambda _: changed.set()):
            try:
                while True:
                    changed.clear()
                    if (rest := self._rests_until - time.monotonic()) > 0:
                        await asyncio.sleep(rest)
                    free = line.at_once - len(tasks)
                    for row in await self.take(line, free) if free else []:
                        task = asyncio.create_task(self.attend(line, row), name=f"{line.table} {row.key}")
                        tasks.add(task)
                        task.add_done_callback(ended)
                    if len(tasks) < line.at_once:
                        soon = await self._database.read(partial(_next_due, line=line))
                        await notified(
                            changed, PATROL_SECONDS if soon is None else min(max(soon, 0.01), PATROL_SECONDS)
                        )
                    else:
                        await changed.wait()
            finally:
                await end(tasks)

    async def take(self, line: Line, limit: int) -> list[Taken]:
        return await self._database.transact(partial(_take, line=line, limit=limit))

    async def attend(self, line: Line, row: Taken) -> None:
        """Attend to a row, and store what came of it."""
        error, due_at = None, None
        first, longest = PAUSES
        pause = min(first * 2 ** min(row.attempts - 1, 20), longest)
        try:
            due_at = await line.attend(self._steps, row)
            how = "done"
        except Unreachable as unreachable:
            error, how = str(unreachable), "put off"
            pause = max(pause, unreachable.pause)
            self._rests_until = max(self._rests_until, time.monotonic() + unreachable.pause)
            log.warning("the payment processor cannot be reached", table=line.table, key=row.key, error=error)
        except Exception as fault:
            error, how = repr(fault), "failed"
            log.error("work with the payment processor failed", table=line.table, key=row.key, exc_info=fault)
        ATTENDED.labels(line.table, how).inc()
        await self._steps.transact(partial(_settle, line=line, row=row, due_at=due_at, error=error, pause=pause))


async def _take(tx: Tx, *, line: Line, limit: int) -> list[Taken]:
    return await tx.rows(
        Taken,
        f"""
        update {line.table}
           set due_at = clock_timestamp() + %(lease)s * interval '1 second', attempts = attempts + 1
         where {line.key} = any(array(select {line.key} from {line.table} where due_at <= now() and {line.rows}
                                       order by {line.order} limit %(limit)s for update skip locked))
        returning {line.key} as key, attempts, due_at as until
        """,
        {"lease": LEASE_SECONDS, "limit": limit},
    )


async def _settle(
    tx: Tx, *, line: Line, row: Taken, due_at: dt.datetime | None, error: str | None, pause: float
) -> None:
    """Store what came of it. Whoever has set `due_at` meanwhile wants the row to be looked at again."""
    await tx.run(
        f"""
        update {line.table}
           set due_at = case when %(error)s::text is null then %(due_at)s::timestamptz
                             else now() + %(pause)s * interval '1 second' end,
               attempts = case when %(error)s::text is null then 0 else attempts end,
               error = coalesce(left(%(error)s, 1000), error)
         where {line.key} = %(key)s and due_at = %(until)s
        """,
        {"key": row.key, "until": row.until, "due_at": due_at, "error": error, "pause": pause},
    )


async def _next_due(reader: Reader, *, line: Line) -> float | None:
    """Seconds until the next row is due; None if none is."""
    return await reader.value(
        f"select extract(epoch from min(due_at) - clock_timestamp())::float8 from {line.table}"
        f" where due_at is not null and {line.rows}"
    )
