"""The lock of the sender: only the process that holds it sends mails.

It is a table lock, not an advisory lock: a statement that waits for an advisory lock holds a snapshot, so that VACUUM
could not remove rows that were deleted since then.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
from psycopg import AsyncConnection

from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.connection_pool import KEEPALIVE, SESSION_SETTINGS
from holdfast.kit.postgres.database import Database

LOCK_CHECK_SECONDS = 2
"""Seconds between two checks of the lock by an idle sender. This is shorter than the idle timeout of sessions."""

MAX_LOCK_CHECK_SECONDS = 0.5
"""Seconds that a check may take. If the answer took longer, the process may have been suspended and may have lost the
lock since, so it asks again."""


class SenderLockLost(Exception):
    """This process does not, or no longer, hold the lock of the sender."""


class SenderLock:
    """The lock of the sender, held by a transaction on a separate connection."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._using = asyncio.Lock()

    async def check_held(self) -> None:
        """Raises `SenderLockLost` unless this process holds the lock now.

        Nothing is awaited after the answer was found recent, so a caller that sends immediately can rely on it.
        """
        try:
            async with self._using:
                asked_at = 0.0
                while time.monotonic() > asked_at + MAX_LOCK_CHECK_SECONDS:
                    asked_at = time.monotonic()
                    await self._connection.execute("select 1")
        except psycopg.Error as error:
            raise SenderLockLost(first_line(error)) from error

    async def check_regularly(self) -> None:
        """Check the lock regularly. Raises `SenderLockLost`."""
        while True:
            await asyncio.sleep(LOCK_CHECK_SECONDS)
            await self.check_held()


@contextlib.asynccontextmanager
async def hold_sender_lock(database: Database[Any]) -> AsyncGenerator[SenderLock]:
    """Wait for the lock of the sender, and hold it until the block ends or the connection is lost."""
    name = f"{database.name} mails"
    async with await AsyncConnection.connect(
        database.url, autocommit=True, application_name=name, **KEEPALIVE
    ) as connection:
        await connection.execute(SESSION_SETTINGS)
        await connection.execute("set lock_timeout = 0; set statement_timeout = 0")
        await connection.execute("begin")
        # This statement looks the table up, which takes a snapshot. So the next one, which waits, needs none.
        await connection.execute("lock table mail_sender in access share mode")
        await connection.execute("lock table mail_sender in exclusive mode")
        yield SenderLock(connection)
