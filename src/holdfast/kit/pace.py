"""The pace of work that nobody waits for, such as writing mails, in a process that answers requests too."""

import asyncio
import time

SHARE = 50
"""How many times as long as a turn of the loop such work rests. A turn is short while few requests are answered."""

LONGEST = 0.1
"""The most seconds of a rest, so that the work goes on however busy the process is."""


async def give_way() -> None:
    """Rest for a while between two pieces of work: hardly at all in an idle process, longer in a busy one."""
    started = time.monotonic()
    await asyncio.sleep(0)
    await asyncio.sleep(min(SHARE * (time.monotonic() - started), LONGEST))
