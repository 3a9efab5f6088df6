"""A loop is background work: again and again, a step does all that is due. A `Loop` says what its step is.

A step is made when a notification comes on a channel of the loop, when the seconds that the last step named have
passed, and at the start. A loop that fails is started again.

A step works on unlocked rows at once, and leaves each locked row to a waiter, which waits for that row. So the loop
itself waits for no row.

A loop with `is_led` runs in one process at a time, so that not all processes poll for the same work. Every process has
a named session in PostgreSQL and regularly reads the list of these sessions. The loops are assigned in order: the first
loop to the oldest session, the second loop to the next one. So all processes agree without exchanging messages.
PostgreSQL ends the session of a process that stalls, or whose machine has failed. This saves look-ups and guarantees
nothing: for a moment two processes, or none, may lead a loop. So a loop must be correct with any number of processes
running it. Processes with other loops, such as those of another version, are not counted: each version has its own
leaders.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any, LiteralString

import psycopg
import structlog
from prometheus_client import Gauge
from psycopg import AsyncConnection

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.connection_pool import KEEPALIVE, RETRY_SECONDS
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import POSTGRES_CHANNEL, wait_for_notification

log = structlog.get_logger()

MAX_WAITERS = 2
"""Waiters of one loop. Each holds a connection while it waits."""


WAITERS = bound_without_strangers(
    "Locked rows that a background loop waits for",
    "both",
    f"{MAX_WAITERS} of each loop; others are tried again later",
    "none",
)


class RowWaiters:
    """The locked rows of one loop that have waiters. The waiters are cancelled when the block ends.

    ended    called after each waiter, so that the loop polls again
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def ids(self) -> list[int]:
        """The ids of the rows that have a waiter. The loop skips them."""
        return list(self._tasks)

    @property
    def are_busy(self) -> bool:
        """Whether no waiter is free for another row. Then the loop retries the row later."""
        return len(self._tasks) >= MAX_WAITERS

    def leave(self, row: int, work: Callable[[], Awaitable[object]]) -> None:
        """Leave the work on a row to a waiter, if one is free."""
        if row not in self._tasks and not self.are_busy:
            self._tasks[row] = create_shared_task(self._work(row, work), name=f"waiter for {row}")

    async def _work(self, row: int, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except Problem as problem:
            log.warning("a row is still locked", row=row, problem=problem.message)
        except Exception as error:
            log.error("work on a locked row failed", row=row, exc_info=error)
        finally:
            del self._tasks[row]
            self._ended()

    async def __aenter__(self) -> "RowWaiters":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end_tasks(self._tasks.values())


LoopStep = Callable[[Database[Any], RowWaiters], Awaitable[float]]
"""Does all that is due, and leaves locked rows to waiters. Returns the seconds until the next step."""


@dataclass(frozen=True)
class Loop:
    """Background work that runs as long as the process does.

    name        its name in logs, and among the leaders
    step        its step
    channels    the channels whose notifications cause the next step at once
    is_led      whether only its leader runs it
    begin       opens what it keeps between its steps, and gives its step; it takes the place of `step`
    gauges      the gauges that it sets; they are 0 when it ends, since another process sets them from then on
    """

    name: str
    step: LoopStep | None = None
    channels: Sequence[str] = ()
    is_led: bool = True
    begin: Callable[[Database[Any]], AbstractAsyncContextManager[LoopStep]] | None = None
    gauges: Sequence[Gauge] = ()

    async def run(self, database: Database[Any]) -> None:
        """Make one step after another, until cancelled."""
        woken = asyncio.Event()
        async with AsyncExitStack() as stack:
            for gauge in self.gauges:
                stack.callback(gauge.set, 0)
            for channel in self.channels:
                stack.enter_context(database.listen(channel, lambda _: woken.set()))
            waiters = await stack.enter_async_context(RowWaiters(woken.set))
            step = await stack.enter_async_context(self._begin(database))
            while True:
                woken.clear()
                await wait_for_notification(woken, await step(database, waiters))

    def _begin(self, database: Database[Any]) -> AbstractAsyncContextManager[LoopStep]:
        if self.begin:
            return self.begin(database)
        assert self.step, f"the loop {self.name} has no step"
        return nullcontext(self.step)


RESTART_SECONDS = 0.5
"""Seconds until failed background work is started again."""

REPEATED_FAILURE_SECONDS = 60
"""Seconds within which the same failure counts as a repetition, and is not logged again."""


async def keep_running(name: str, run: Callable[[], Awaitable[object]]) -> None:
    """Run background work, and start it again after a failure. A repeated failure is logged once."""
    failure = ""
    while True:
        started = time.monotonic()
        try:
            await run()
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                return  # the work was cancelled, and failed while it ended
            lasts = failure == repr(error) and time.monotonic() < started + REPEATED_FAILURE_SECONDS
            failure = repr(error)
            # The database logs when it is unreachable, and when it is back.
            if not lasts and not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                log.error("background work failed; starting it again", loop=name, exc_info=error)
        await asyncio.sleep(RESTART_SECONDS)


IDLE_TURN_SECONDS = 0.0001
"""Processor seconds. A turn of the event loop that takes less had almost nothing to do. Time in which other processes
had the processor does not count: a pause would give them more, and this process has no requests for it."""

PAUSE_FACTOR = 4
"""How many times as long as a longer turn the pause after it is, up to `MAX_PAUSE_SECONDS`."""

MAX_PAUSE_SECONDS = 0.1
"""The longest pause. So a busy process still does some pieces of work a second."""


async def yield_to_requests() -> None:
    """Pause between two pieces of work that is not urgent, if the event loop is busy with requests."""
    started = time.thread_time()
    await asyncio.sleep(0)
    seconds = time.thread_time() - started
    if seconds > IDLE_TURN_SECONDS:
        await asyncio.sleep(min(PAUSE_FACTOR * seconds, MAX_PAUSE_SECONDS))


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
        self._changed = asyncio.Event()

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
                            await wait_for_notification(notice, self._pause)
                if time.monotonic() > polled_at + ISOLATION_TIMEOUT_SECONDS:
                    self._set_loops(self._loops)
                await asyncio.sleep(RETRY_SECONDS)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    def _set_loops(self, loops: Sequence[str]) -> None:
        self._led = loops
        self._changed.set()
        self._changed = asyncio.Event()

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
