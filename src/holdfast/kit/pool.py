"""A pool of connections to PostgreSQL that is full again as soon as the database is back."""

import asyncio
import math
from typing import Any, LiteralString, Self

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import AddConnection, MaintenanceTask

from holdfast.kit.commits import Synced

RETRY = 0.25
"""Seconds between attempts to connect to a database that is away."""

AT_ONCE = 0.05
"""Seconds to wait for a connection while the database is away: as good as none, but the library refuses none."""

KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
}

SESSION: LiteralString = """
    set timezone = 'UTC';
    set statement_timeout = '30s';
    -- Plans are cached while tables are small. Without this a scan of a small table may be cached, which later is slow.
    set random_page_cost = 1.1;
    -- Statements are look-ups, planned alike for all values. Planning them each time took a third of what a change of
    -- stock costs PostgreSQL. `tests/plans` judges the plans without values.
    set plan_cache_mode = force_generic_plan;
    -- Whoever needs a row that others have locked waits for so long, and is then refused.
    set lock_timeout = '5s';
    -- The locks of a process that stalls, or whose machine fails, must be released.
    set idle_in_transaction_session_timeout = '10s';
    set tcp_keepalives_idle = 10;
    set tcp_keepalives_interval = 5;
    set tcp_keepalives_count = 3
"""
"""What every connection is told when it is made."""


class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
    """A pool that tries to connect at short, even intervals. The library doubles its pauses, and then gives up."""

    @classmethod
    def sized(cls, url: str, size: int, name: str) -> Self:
        """A pool of up to `size` connections."""
        return cls(
            url,
            min_size=2,
            max_size=size,
            timeout=5,
            reconnect_timeout=math.inf,
            open=False,
            configure=_configure,
            name=name,
            kwargs={"autocommit": True, "application_name": name, "cursor_factory": Synced, **KEEPALIVE},
        )

    async def getconn(self, timeout: float | None = None) -> AsyncConnection[Any]:  # noqa: ASYNC109 - the library's
        """As the library does, and whoever is cancelled while it waits ends, even if it got a connection just then.

        The library waits by `asyncio.wait_for`, which can lose a cancellation in Python 3.11.
        """
        task = asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        connection = await super().getconn(timeout)
        if task and task.cancelling() > cancelled:
            await self.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def schedule_task(self, task: MaintenanceTask, delay: float) -> None:
        await super().schedule_task(task, RETRY if isinstance(task, AddConnection) else delay)


async def _configure(connection: AsyncConnection[Any]) -> None:
    await connection.execute(SESSION)
