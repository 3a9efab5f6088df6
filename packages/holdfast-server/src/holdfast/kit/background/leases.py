"""Leases: a process leases rows that are due, and no other process works on them meanwhile.

A lease ends `LEASE_SECONDS` after its last renewal. So another process soon leases the rows of a killed process, and
work may take as long as it needs. Each lease has an id, which is stored in the row. A process may stall, and lose its
rows to another process; when it wakes, two things stop it:

* its work is cancelled before its next step (`keep_lease`), so it makes no more calls;
* each of its transactions checks at the end that the row still has the id of the lease (`LeaseFence`), and is rolled
  back if not.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, LiteralString
from uuid import UUID

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Tx

LEASE_SECONDS = 10.0
"""Seconds until another process may lease a row whose lease is not renewed, by the clock of the database."""

RENEW_SECONDS = 2.5
"""Seconds between two renewals: three may fail."""

LEASE_INTERVAL: LiteralString = "%(seconds)s * interval '1 second'"
"""SQL for the length of a lease."""


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

    due_at    the column with the end of the lease
    lease     the column with the id of the lease
    """

    def __init__(
        self,
        table: LiteralString,
        key: LiteralString,
        keys: Sequence[Any],
        lease_id: UUID | int,
        *,
        due_at: LiteralString = "due_at",
        lease: LiteralString = "lease_id",
    ) -> None:
        self._table: LiteralString = table
        self._key: LiteralString = key
        self._due_at: LiteralString = due_at
        self._lease: LiteralString = lease
        self._parameters = {"keys": list(keys), "lease_id": lease_id}

    async def check(self, tx: Tx[Any]) -> None:
        """Raises `LeaseLost`. Until the transaction ends, no other process can lease the rows."""
        rows = await tx.tuples(
            f"""
            select {self._lease} is not distinct from %(lease_id)s from {self._table}
             where {self._key} = any(%(keys)s) order by {self._key} for share
            """,
            self._parameters,
        )
        if not all(is_held for (is_held,) in rows):
            raise LeaseLost

    async def renew(self, tx: Tx[Any]) -> bool:
        """Renew the lease, unless it was given back. Returns False if another process has leased a row.

        A row whose `due_at` has passed, because it must be checked again, stays due. A longer lease stays as long.
        """
        await tx.run(
            f"""
            update {self._table} set {self._due_at} = greatest({self._due_at}, clock_timestamp() + {LEASE_INTERVAL})
             where {self._key} = any(array(
                   select {self._key} from {self._table}
                    where {self._key} = any(%(keys)s) and {self._lease} = %(lease_id)s
                      and {self._due_at} > clock_timestamp()
                    order by {self._key} for no key update skip locked))
            """,
            {**self._parameters, "seconds": LEASE_SECONDS},
        )
        return not await tx.value(
            f"""
            select exists (select from {self._table}
                            where {self._key} = any(%(keys)s) and {self._lease} <> %(lease_id)s)
            """,
            self._parameters,
        )
