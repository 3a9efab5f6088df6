"""Leaders: which process runs a loop, so that not all processes poll for the same work.

Every process has a named session in PostgreSQL and regularly reads the list of these sessions. The loops are assigned
in order: the first loop to the oldest session, the second loop to the next one. So all processes agree without
exchanging messages. PostgreSQL ends the session of a process that stalls, or whose machine has failed.

This saves look-ups and guarantees nothing: for a moment two processes, or none, may lead a loop. So a loop must be
correct with any number of processes running it. Processes with other loops, such as those of another version, are not
counted: each version has its own leaders.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.postgres.connection_pool import KEEPALIVE, RETRY_SECONDS
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import POSTGRES_CHANNEL, wait_for_notice

CHANNEL_OF_LEADERS: LiteralString = "leaders"
"""The channel on which a process announces that it starts or ends."""

POLL_SECONDS = 1.0
"""Seconds between two reads of the list of processes."""

LEADER_POLL_SECONDS = 0.5
"""Seconds between two reads for a process that leads a loop, or that would lead one if one other process ended."""

SESSION_TIMEOUT_SECONDS = 3.0
"""Seconds after which PostgreSQL ends the session of a process that does not poll."""

MAX_TAKEOVER_SECONDS = SESSION_TIMEOUT_SECONDS + POLL_SECONDS
"""The most seconds until another process leads the loops of a process that was killed or whose machine failed."""

ISOLATION_TIMEOUT_SECONDS = 3.0
"""Seconds without the list of processes after which a process leads every loop itself."""

CLOSE_TIMEOUT_SECONDS = 1.0


class Leaders:
    """Knows which loops this process leads.

    loops    the names of the loops; the order is the same in every process of this version
    """

    def __init__(self, database: Database[Any], loops: Sequence[str]) -> None:
        self._loops = loops
        version = sha256("\n".join(loops).encode()).hexdigest()[:8]
        self._name = f"{database.name} leaders {version}"
        self._led: Sequence[str] = ()
        self._pause = LEADER_POLL_SECONDS
        self._change_signal = asyncio.Event()

    async def lead(self, loop: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop whenever this process leads it, until cancelled."""
        while True:
            await self._until(lambda: loop in self._led)
            working = asyncio.create_task(work(), name=loop)
            try:
                await self._until(lambda: loop not in self._led)
            finally:
                await end_tasks([working])

    async def run(self, database: Database[Any]) -> None:
        """Update the loops that this process leads, until cancelled."""
        polled_at = time.monotonic()
        notice = asyncio.Event()
        with database.listen(CHANNEL_OF_LEADERS, lambda _: notice.set()):
            while True:
                # The database logs when it is unreachable, and when it is back.
                with contextlib.suppress(psycopg.OperationalError):
                    async with self._session(database) as session:
                        while True:
                            notice.clear()
                            self._set_loops(await self._assigned(session))
                            polled_at = time.monotonic()
                            await wait_for_notice(notice, self._pause)
                if time.monotonic() > polled_at + ISOLATION_TIMEOUT_SECONDS:
                    self._set_loops(self._loops)
                await asyncio.sleep(RETRY_SECONDS)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._change_signal.wait()

    def _set_loops(self, loops: Sequence[str]) -> None:
        self._led = loops
        self._change_signal.set()
        self._change_signal = asyncio.Event()

    async def _assigned(self, session: AsyncConnection[Any]) -> Sequence[str]:
        """The loops that this process leads: all of them if its own session is not in the list."""
        rows = await (await session.execute(PROCESSES, [self._name])).fetchall()
        sessions = [is_this for (is_this,) in rows]
        if True not in sessions:
            return self._loops
        index = sessions.index(True)
        self._pause = LEADER_POLL_SECONDS if index <= len(self._loops) else POLL_SECONDS
        return self._loops[index :: len(sessions)]

    @contextlib.asynccontextmanager
    async def _session(self, database: Database[Any]) -> AsyncGenerator[AsyncConnection[Any]]:
        """The named session of this process. It notifies the others when it begins, and when it is closed."""
        async with await AsyncConnection.connect(
            database.url, autocommit=True, application_name=self._name, **KEEPALIVE
        ) as session:
            await session.execute(
                "select set_config('idle_session_timeout', %s, false)", [f"{SESSION_TIMEOUT_SECONDS:.0f}s"]
            )
            await session.execute(NOTIFY_OTHERS)
            try:
                yield session
            finally:
                with contextlib.suppress(TimeoutError, psycopg.Error):
                    async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                        await session.execute("select set_config('application_name', '', false)")
                        await session.execute(NOTIFY_OTHERS)


PROCESSES: LiteralString = """
    select pid = pg_backend_pid() from pg_stat_activity
     where datname = current_database() and application_name = %s order by backend_start, pid
"""

NOTIFY_OTHERS: LiteralString = f"select pg_notify('{POSTGRES_CHANNEL}', '{CHANNEL_OF_LEADERS} ')"
