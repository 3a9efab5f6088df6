"""A pool of connections to PostgreSQL that is full again as soon as the database is back."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Self

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import AddConnection, MaintenanceTask

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

Configure = Callable[[AsyncConnection[Any]], Awaitable[None]]


class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
    """A pool that tries to connect at short, even intervals. The library doubles its pauses, and then gives up."""

    @classmethod
    def sized(
        cls, url: str, size: int, name: str, configure: Callable[[AsyncConnection[Any]], Awaitable[None]]
    ) -> Self:
        """A pool of up to `size` connections, each with `configure` run on it."""
        return cls(
            url,
            min_size=2,
            max_size=size,
            timeout=5,
            reconnect_timeout=math.inf,
            open=False,
            configure=configure,
            name=name,
            kwargs={"autocommit": True, "application_name": name, **KEEPALIVE},
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
