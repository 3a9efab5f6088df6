"""Leases: a process leases rows that are due, and no other process works on them meanwhile. `RowTable` does so with the
rows of a table.

A lease ends `LEASE_SECONDS` after its last renewal. So another process soon leases the rows of a killed process, and
work may take as long as it needs. Each lease has an id, which is stored in the row. A process may stall, and lose its
rows to another process; when it wakes, two things stop it:

* its work is cancelled before its next step (`keep_lease`), so it makes no more calls;
* each of its transactions checks at the end that the row still has the id of the lease (`LeaseFence`), and is rolled
  back if not.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4

from msgspec import Struct

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Reader, Tx

LEASE_SECONDS = 10.0
"""Seconds until another process may lease a row whose lease is not renewed, by the clock of the database."""

RENEW_SECONDS = 2.5
"""Seconds between two renewals: two may fail one after the other."""

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


class LeasedRow(Struct):
    """A row that this process has leased.

    attempts    the number of attempts without success, this one included; of a table without `lease_id` all attempts
    lease_id    the id of the lease
    owner       whose row it is, if rows are leased in turns of owners
    """

    key: Any
    attempts: int
    lease_id: UUID | int
    owner: int = 0


class RowTable(NamedTuple):
    """The table, its columns, and which of its rows are meant.

    key               the primary key
    condition         which rows of the table are meant
    order             the order in which rows are leased
    due_at            the column that says when a row is due, or until when it is leased; null: never
    attempts          the column that counts the leases since the last success; without `lease_id` all leases
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
        """The fence of a row that this process has leased."""
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

        Leasing set `due_at` to the end of the lease. A `due_at` that another transaction has set to null (never), or to
        a time that has passed, stays. After a success `error` still has the text of the last failure.
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
