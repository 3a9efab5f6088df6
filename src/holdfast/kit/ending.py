"""How tasks are ended that would run on for ever."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_SECONDS = 15.0
"""Seconds after which a task that goes on is cancelled again: more than any task takes to finish what it has begun."""


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and return when all of them have ended. Their errors are dropped.

    A cancellation can get lost: `asyncio.wait_for`, by which libraries wait, drops it in Python 3.11 if what it waits
    for comes at the same moment. So it is repeated.
    """
    left = {*tasks}
    while left:
        for each in left:
            each.cancel()
        done, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        for each in done:
            if not each.cancelled():
                each.exception()  # else it would be logged that nobody has asked for it
