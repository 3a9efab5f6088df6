"""A session that keeps rows locked, as the open transaction of an operator or of a stalled process does."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

import psycopg

from tests.helpers.events_service import eventually

T = TypeVar("T")

MAX_UNDELAYED_SECONDS = 2
"""The most seconds that work may take which does not need the locked rows."""

LOCK_WAITERS = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


class LockHolder:
    """A session with an open transaction."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def commit(self) -> None:
        await self._connection.commit()

    async def rollback(self) -> None:
        await self._connection.rollback()

    async def wait_for_waiters(self, number: int = 1) -> None:
        """Wait until a number of sessions wait for a lock."""

        async def run_sql(statement: Any) -> list[tuple[Any, ...]]:
            # Statistics of activity are read once in a transaction, unless told otherwise.
            await self._connection.execute("select pg_stat_clear_snapshot()")
            return await (await self._connection.execute(statement)).fetchall()

        await wait_for_lock_waiters(run_sql, number)


@contextlib.asynccontextmanager
async def hold_locks(url: str, statement: Any, **parameters: Any) -> AsyncGenerator[LockHolder]:
    """Keep what the statement locks until the block ends, or until the session ends its transaction."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(statement, parameters)
        yield LockHolder(connection)
        await connection.rollback()


async def wait_for_lock_waiters(run_sql: Callable[[Any], Awaitable[list[tuple[Any, ...]]]], number: int = 1) -> None:
    """Wait until a number of sessions of the database wait for a lock. `run_sql` runs a statement there."""

    async def are_waiting() -> bool:
        return len(await run_sql(LOCK_WAITERS)) >= number

    await eventually(are_waiting)


async def without_waiting(work: Awaitable[T]) -> T:
    """The result of work that must not wait for locked rows. Raises `TimeoutError` if it waits."""
    async with asyncio.timeout(MAX_UNDELAYED_SECONDS):
        return await work
