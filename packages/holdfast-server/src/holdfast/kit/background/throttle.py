"""Background work that is not urgent pauses while its process answers requests."""

import asyncio
import time

IDLE_TURN_SECONDS = 0.0001
"""Processor seconds. A turn of the event loop that takes less had almost nothing to do. Time in which other processes
had the processor does not count: a pause would give them more, and this process has no requests for it."""

PAUSE_FACTOR = 4
"""How many times as long as a longer turn the pause after it is. So such work gets a fifth of the turns at most."""

MAX_PAUSE_SECONDS = 0.1
"""The longest pause. So a busy process still does about nine pieces of work a second."""


async def yield_to_requests() -> None:
    """Pause between two pieces of work if the event loop is busy with requests."""
    started = time.thread_time()
    await asyncio.sleep(0)
    seconds = time.thread_time() - started
    if seconds > IDLE_TURN_SECONDS:
        await asyncio.sleep(min(PAUSE_FACTOR * seconds, MAX_PAUSE_SECONDS))
