"""The priority of requests over background work: work that is not urgent pauses while the event loop is busy."""

import asyncio
import time

IDLE_TURN_SECONDS = 0.0001
"""Processor seconds of this process. A turn of the event loop that takes less had almost nothing to do. Time in which
other processes had the processor does not count: a pause would not help the requests of this one."""

PAUSE_FACTOR = 4
"""How many times as long as a longer turn the pause after it is, up to `MAX_PAUSE_SECONDS`."""

MAX_PAUSE_SECONDS = 0.1
"""The longest pause. So a busy process still does some pieces of work a second."""


async def yield_to_requests() -> None:
    """Pause between two pieces of work that is not urgent, if the event loop is busy with requests."""
    started_at = time.thread_time()
    await asyncio.sleep(0)
    seconds = time.thread_time() - started_at
    if seconds > IDLE_TURN_SECONDS:
        await asyncio.sleep(min(PAUSE_FACTOR * seconds, MAX_PAUSE_SECONDS))
