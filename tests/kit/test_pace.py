"""Work that nobody waits for gives way to requests."""

import asyncio
import time

from holdfast.kit.pace import QUIET, REST, give_way


async def test_it_rests_in_a_process_that_is_busy() -> None:
    asyncio.get_running_loop().call_soon(time.sleep, 5 * QUIET)

    started = time.monotonic()
    await give_way()

    assert time.monotonic() - started >= REST
