"""Background work that is not urgent pauses while the event loop is busy with requests."""

import asyncio
import time

from holdfast.kit.background.request_priority import IDLE_TURN_SECONDS, PAUSE_FACTOR, yield_to_requests


async def test_a_busy_process_pauses_background_work() -> None:
    def work() -> None:
        until = time.thread_time() + 5 * IDLE_TURN_SECONDS
        while time.thread_time() < until:
            pass

    asyncio.get_running_loop().call_soon(work)

    started = time.monotonic()
    await yield_to_requests()

    assert time.monotonic() - started >= PAUSE_FACTOR * 5 * IDLE_TURN_SECONDS
