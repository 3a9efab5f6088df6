"""Waiters: they do the work of a background loop that needs a row which somebody else has locked.

A loop does at once what it can, and leaves the rest to its waiters. Each of them waits for one row, so that the loop
itself never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

import structlog

from holdfast.kit.ending import end
from holdfast.kit.problems import Problem

log = structlog.get_logger()

AT_ONCE = 2
"""The most waiters of one loop: each holds a connection while it waits."""


class Waiters:
    """The waiters of one loop. They are cancelled when the block ends.

    ended    called after each waiter, so that the loop looks again
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def rows(self) -> list[int]:
        """The ids of the rows that are waited for: the loop leaves them out."""
        return list(self._tasks)

    @property
    def are_busy(self) -> bool:
        """Whether there is no waiter for another row; the loop then tries it again a little later."""
        return len(self._tasks) >= AT_ONCE

    def leave(self, row: int, work: Callable[[], Awaitable[object]]) -> None:
        """Leave the work on a row to a waiter, if one is free."""
        if row not in self._tasks and not self.are_busy:
            self._tasks[row] = asyncio.create_task(self._work(row, work), name=f"waiter for {row}")

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

    async def __aenter__(self) -> "Waiters":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end(self._tasks.values())
