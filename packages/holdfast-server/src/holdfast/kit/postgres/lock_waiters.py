"""Waiters: tasks that do the work of a background loop on rows that other transactions have locked.

A loop works on unlocked rows at once, and leaves each locked row to a waiter, which waits for that row. So the loop
itself never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

import structlog

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.contract.problems import Problem

log = structlog.get_logger()

MAX_WAITERS = 2
"""Waiters of one loop. Each holds a connection while it waits."""


WAITERS = Bound(
    name="Locked rows that a background loop waits for",
    service="both",
    total=f"{MAX_WAITERS} of each loop in a process; other locked rows are tried again later",
    tenant="none",
    address="none",
    reserved="other rows are worked on meanwhile",
    stranger="Nothing: a stranger holds no lock while a request waits.",
)


class LockWaiters:
    """The waiters of one loop. They are cancelled when the block ends.

    ended    called after each waiter, so that the loop polls again
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def rows(self) -> list[int]:
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

    async def __aenter__(self) -> "LockWaiters":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end_tasks(self._tasks.values())
