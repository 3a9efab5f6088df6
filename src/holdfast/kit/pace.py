"""The pace of work that nobody waits for, such as sending mails, in a process that answers requests too."""

import asyncio
import time

QUIET = 0.0001
"""A turn of the loop that takes fewer seconds than this had hardly anything to do."""

REST = 0.1
"""Seconds of rest after a longer turn. So a process that is always busy still does about nine such pieces a second."""


async def give_way() -> None:
    """Rest between two pieces of work if the loop is busy with requests."""
    started = time.monotonic()
    await asyncio.sleep(0)
    if time.monotonic() - started > QUIET:
        await asyncio.sleep(REST)
