"""Leaders: some loops run in one process at a time, so that twenty processes do not all look for the same work.

Every process has a session by which the others know it, and looks now and then which ones there are. The loops are
dealt out in order: the first to the process that has been there longest, the next to the second. So all agree without
a word. PostgreSQL ends the session of a process that stalls, or whose machine has failed.

This saves look-ups, and protects nothing. For a moment two processes may lead a loop, or none. So a loop has to be
right however many processes run it.

Processes with other loops, such as those of another version, are not counted: each version has leaders of its own.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection

from holdfast.kit.database import Database
from holdfast.kit.ending import end
from holdfast.kit.notifications import CHANNEL, notified
from holdfast.kit.pool import KEEPALIVE, RETRY

COMING_AND_GOING: LiteralString = "leaders"
"""The channel on which a process says that it has come, or goes."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at the other processes."""

NEXT_SECONDS = 0.5
"""Seconds between two looks of a process that leads a loop, or would lead one if another process were gone."""

SILENT_SECONDS = 3.0
"""Seconds after which PostgreSQL ends the session of a process that does not look."""

TAKEN_OVER_SECONDS = SILENT_SECONDS + LOOK_SECONDS
"""The most seconds until another process leads the loops of one that was killed or stopped, or whose machine failed."""

ALONE_SECONDS = 3.0
"""A process that cannot see the others for so long leads every loop: somebody has to."""

GOODBYE_SECONDS = 1.0


class Leaders:
    """Which of some loops this process leads.

    loops    their names; the order is the same in every process of this version
    """

    def __init__(self, database: Database[Any], loops: Sequence[str]) -> None:
        self._loops = loops
        version = sha256("\n".join(loops).encode()).hexdigest()[:8]
        self._name = f"{database.name} leaders {version}"
        self._led: Sequence[str] = ()
        self._pause = NEXT_SECONDS
        self._changed = asyncio.Event()

    async def lead(self, loop: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop whenever this process leads it, until cancelled."""
        while True:
            await self._until(lambda: loop in self._led)
            working = asyncio.create_task(work(), name=loop)
            try:
                await self._until(lambda: loop not in self._led)
            finally:
                await end([working])

    async def run(self, database: Database[Any]) -> None:
        """Keep up to date which loops this process leads, until cancelled."""
        seen = time.monotonic()
        looked = asyncio.Event()
        with database.listen(COMING_AND_GOING, lambda _: looked.set()):
            while True:
                # The database logs when it is away, and when it is back.
                with contextlib.suppress(psycopg.OperationalError):
                    async with self._session(database) as session:
                        while True:
                            looked.clear()
                            self._take(await self._dealt(session))
                            seen = time.monotonic()
                            await notified(looked, self._pause)
                if time.monotonic() > seen + ALONE_SECONDS:
                    self._take(self._loops)
                await asyncio.sleep(RETRY)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    def _take(self, loops: Sequence[str]) -> None:
        self._led = loops
        self._changed.set()
        self._changed = asyncio.Event()

    async def _dealt(self, session: AsyncConnection[Any]) -> Sequence[str]:
        """The loops that fall to this process: all of them if it does not see itself."""
        rows = await (await session.execute(PROCESSES, [self._name])).fetchall()
        sessions = [is_this for (is_this,) in rows]
        if True not in sessions:
            return self._loops
        place = sessions.index(True)
        self._pause = NEXT_SECONDS if place <= len(self._loops) else LOOK_SECONDS
        return self._loops[place :: len(sessions)]

    @contextlib.asynccontextmanager
    async def _session(self, database: Database[Any]) -> AsyncGenerator[AsyncConnection[Any]]:
        """The session by which others know this process. They hear when it begins, and when it ends in good order."""
        async with await AsyncConnection.connect(
            database.url, autocommit=True, application_name=self._name, **KEEPALIVE
        ) as session:
            await session.execute("select set_config('idle_session_timeout', %s, false)", [f"{SILENT_SECONDS:.0f}s"])
            await session.execute(TELL)
            try:
                yield session
            finally:
                with contextlib.suppress(TimeoutError, psycopg.Error):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await session.execute("select set_config('application_name', '', false)")
                        await session.execute(TELL)


PROCESSES: LiteralString = """
    select pid = pg_backend_pid() from pg_stat_activity
     where datname = current_database() and application_name = %s order by backend_start, pid
"""
TELL: LiteralString = f"select pg_notify('{CHANNEL}', '{COMING_AND_GOING} ')"
