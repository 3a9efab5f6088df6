"""A pool of connections to PostgreSQL that is full again as soon as the database is back."""

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

    async def schedule_task(self, task: MaintenanceTask, delay: float) -> None:
        await super().schedule_task(task, RETRY if isinstance(task, AddConnection) else delay)
