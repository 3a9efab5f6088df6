"""Background work that runs while a test does something else."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def run_in_background(*loops: Coroutine[Any, Any, Any]) -> AsyncGenerator[None]:
    """Loops that run while the block lasts. Fails if one of them ends before."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
