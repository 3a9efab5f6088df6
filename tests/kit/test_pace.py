"""Work that nobody waits for gives way to requests."""

import asyncio
import time

from holdfast.kit.pace import LONGEST, SHARE, give_way


async def test_in_a_busy_process_it_rests_many_times_as_long_as_a_turn_of_the_loop_takes() -> None:
    turn = 0.0015
    asyncio.get_running_loop().call_soon(time.sleep, turn)

    started = time.monotonic()
    await give_way()

    assert time.monotonic() - started >= min(SHARE * turn, LONGEST)
