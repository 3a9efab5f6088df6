"""Ends tasks that would otherwise run for ever. Stays until Python 3.11 is no longer supported (docs/upstream.md)."""

import asyncio
from collections.abc import Iterable
from typing import Any

CANCEL_RETRY_SECONDS = 15.0
"""Seconds after which a task that still runs is cancelled again: longer than any task needs to finish."""


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and return when all of them have ended. Drops their errors.

    A cancellation can be lost: `asyncio.wait_for`, which libraries use, drops it in Python 3.11 if the awaited result
    arrives at the same moment. So it is repeated.
    """
    remaining_tasks = {*tasks}
    while remaining_tasks:
        for task in remaining_tasks:
            task.cancel()
        ended_tasks, remaining_tasks = await asyncio.wait(remaining_tasks, timeout=CANCEL_RETRY_SECONDS)
        for task in ended_tasks:
            if not task.cancelled():
                task.exception()  # else asyncio logs that the exception was never retrieved
