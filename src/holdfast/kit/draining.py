"""The end of a process behind a load balancer: it says that it is not ready, and serves on until nobody sends more.

From SIGTERM on `/readyz` answers 503, and each answer closes its connection. The balancer sees that, and sends what is
new elsewhere. Some seconds later the process ends as it does without a drain.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import structlog

log = structlog.get_logger()


class _Process:
    """This process. Services that share it drain together.

    told    when it was told to end, by the clock of `time.monotonic`
    """

    told: float | None = None


def is_draining() -> bool:
    """Whether this process was told to end, and serves on for now."""
    return _Process.told is not None


@contextlib.contextmanager
def draining(seconds: float, end: Callable[[], None]) -> Generator[None]:
    """Call `end` when SIGINT stops the process, or so many seconds after SIGTERM does; SIGINT also ends that wait.

    Whoever handled these signals before hears of the signal at that moment, and not earlier.
    """
    loop = asyncio.get_running_loop()
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    waits: list[asyncio.TimerHandle] = []

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(wait if number == signal.SIGTERM and seconds else pass_on, number)

    def wait(number: int) -> None:
        now = time.monotonic()
        _Process.told = _Process.told or now
        left = _Process.told + seconds - now
        if not waits:
            log.info("draining", seconds=round(left, 1))
            waits.append(loop.call_later(left, pass_on, number))

    def pass_on(number: int) -> None:
        for each in waits:
            each.cancel()
        end()
        before[number](number, None)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # only the main thread has signals
            if callable(handler := signal.getsignal(number)):
                before[number] = handler
                signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
