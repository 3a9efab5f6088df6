"""A loop is background work: again and again, a step does all that is due. A `Loop` says what its step is.

A step is made when a notice comes on a channel of the loop, when the seconds that the last step named have
passed, and at the start. A loop that fails is started again.

A step works on unlocked rows at once, and leaves each locked row to a waiter, which waits for that row. So the loop
itself waits for no row.

A loop runs in one process at a time, its leader (`leaders.py`), so that not all processes poll for the same work.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import structlog
from prometheus_client import Gauge

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import wait_for_notice

log = structlog.get_logger()

MAX_WAITERS = 2
"""Waiters of one loop. Each holds a connection while it waits."""

WAITERS = bound_without_strangers(
    name="Locked rows that a background loop waits for",
    service="both",
    total=f"{MAX_WAITERS} of each loop; others are tried again later",
    tenant="none",
)


class RowWaiters:
    """The locked rows of one loop that have waiters. The waiters are cancelled when the block ends.

    on_end    called after each waiter, so that the loop polls again
    """

    def __init__(self, on_end: Callable[[], object]) -> None:
        self._on_end = on_end
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
            self._on_end()

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
    """Background work that one process at a time does, its leader.

    name        its name in logs, and among the leaders
    step        its step
    channels    the channels whose notices cause the next step at once
    open_step   opens what the step needs as long as the loop runs, such as a client, and gives the step; in place of
                `step`
    gauges      the gauges that it sets; they are 0 when it ends, since another process sets them from then on
    """

    name: str
    step: LoopStep | None = None
    channels: Sequence[str] = ()
    open_step: Callable[[Database[Any]], AbstractAsyncContextManager[LoopStep]] | None = None
    gauges: Sequence[Gauge] = ()

    async def run(self, database: Database[Any]) -> None:
        """Make one step after another, until cancelled."""
        wake_signal = asyncio.Event()
        async with AsyncExitStack() as stack:
            for gauge in self.gauges:
                stack.callback(gauge.set, 0)
            for channel in self.channels:
                stack.enter_context(database.listen(channel, lambda _: wake_signal.set()))
            waiters = await stack.enter_async_context(RowWaiters(wake_signal.set))
            step = await stack.enter_async_context(self._step_context(database))
            while True:
                wake_signal.clear()
                await wait_for_notice(wake_signal, await step(database, waiters))

    def _step_context(self, database: Database[Any]) -> AbstractAsyncContextManager[LoopStep]:
        if self.open_step:
            return self.open_step(database)
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
        started_at = time.monotonic()
        try:
            await run()
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                return  # the work was cancelled, and failed while it ended
            is_repeated = failure == repr(error) and time.monotonic() < started_at + REPEATED_FAILURE_SECONDS
            failure = repr(error)
            # The database logs when it is unreachable, and when it is back.
            if not is_repeated and not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                log.error("background work failed; starting it again", loop=name, exc_info=error)
        await asyncio.sleep(RESTART_SECONDS)
