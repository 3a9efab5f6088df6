"""Background work that is not urgent pauses while its process answers requests."""

import asyncio
import time

IDLE_TURN_SECONDS = 0.0001
"""Seconds. A turn of the event loop that takes less time had almost nothing to do."""

PAUSE_SECONDS = 0.1
"""Seconds to pause after a longer turn. So a busy process still does about nine pieces of work a second."""


async def yield_to_requests() -> None:
    """Pause between two pieces of work if the event loop is busy with requests."""
    started = time.monotonic()
    await asyncio.sleep(0)
    if time.monotonic() - started > IDLE_TURN_SECONDS:
        await asyncio.sleep(PAUSE_SECONDS)
