"""A pool of connections to PostgreSQL that refills as soon as the database is back."""

import asyncio
import json
import math
from typing import Any, Self

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import AddConnection, MaintenanceTask

from holdfast.kit.compat.psycopg_pipeline import SyncingCursor
from holdfast.kit.compat.psycopg_pool_lock import remove_lock

RETRY_SECONDS = 0.25
"""Seconds between attempts to connect to an unreachable database."""

OUTAGE_TIMEOUT_SECONDS = 0.05
"""Seconds to wait for a connection while the database is unreachable: almost none, since the library refuses 0."""

KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
}

STALL_TIMEOUT_SECONDS = 10
"""Seconds after which PostgreSQL ends the transaction of a process that stalls or whose machine fails."""

SESSION_SETTINGS = f"""
    set timezone = 'UTC';
    set statement_timeout = '30s';
    -- Plans are cached while tables are small. Without this a scan of a small table may be cached, which later is slow.
    set random_page_cost = 1.1;
    -- Statements are look-ups, planned alike for all values. Planning them each time took a third of what a change of
    -- stock costs PostgreSQL. `tests/plans` judges the plans without values.
    set plan_cache_mode = force_generic_plan;
    -- The time that a statement waits for a row that others have locked. Then it is refused.
    set lock_timeout = '5s';
    set idle_in_transaction_session_timeout = '{STALL_TIMEOUT_SECONDS}s';
    set tcp_keepalives_idle = 10;
    set tcp_keepalives_interval = 5;
    set tcp_keepalives_count = 3
""".encode()
"""The settings of every new connection."""


class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
    """A pool that reconnects at short, constant intervals. The library doubles its pauses, and then gives up."""

    @classmethod
    def sized(cls, url: str, size: int, name: str) -> Self:
        """A pool of up to `size` connections."""
        pool = cls(
            url,
            min_size=2,
            max_size=size,
            timeout=5,
            reconnect_timeout=math.inf,
            open=False,
            configure=_configure,
            name=name,
            kwargs={"autocommit": True, "application_name": name, "cursor_factory": SyncingCursor, **KEEPALIVE},
        )
        remove_lock(pool)
        return pool

    async def getconn(self, timeout: float | None = None) -> AsyncConnection[Any]:  # noqa: ASYNC109 - the library's
        """Get a connection as the library does, but keep a cancellation that arrives together with the connection.

        The library uses `asyncio.wait_for`, which can lose a cancellation in Python 3.11.
        """
        task = asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        connection = await super().getconn(timeout)
        if task and task.cancelling() > cancelled:
            await self.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def schedule_task(self, task: MaintenanceTask, delay: float) -> None:
        await super().schedule_task(task, RETRY_SECONDS if isinstance(task, AddConnection) else delay)


async def _configure(connection: AsyncConnection[Any]) -> None:
    set_json_loads(_decode_json, connection)
    await connection.execute(SESSION_SETTINGS)


def _decode_json(text: str | bytes) -> Any:
    """A value of JSON in a row. msgspec takes an eighth of the time, but refuses numbers beyond those of a float."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return json.loads(text)
