"""Background work gives way to requests."""

import asyncio
import time

from holdfast.kit.background.throttle import IDLE_TURN_SECONDS, PAUSE_FACTOR, yield_to_requests


async def test_a_busy_process_pauses_background_work() -> None:
    asyncio.get_running_loop().call_soon(time.sleep, 5 * IDLE_TURN_SECONDS)

    started = time.monotonic()
    await yield_to_requests()

    assert time.monotonic() - started >= (1 + PAUSE_FACTOR) * 5 * IDLE_TURN_SECONDS
