"""Draining: a process behind a load balancer reports that it is not ready, and serves until no more requests arrive.

After SIGTERM, `/readyz` answers 503 and each answer closes its connection. The balancer notices this and sends new
requests to other processes. Some seconds later the process ends as it does without draining.
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

    drain_began_at    the time of the first SIGTERM, by `time.monotonic`; None before it
    """

    drain_began_at: float | None = None


def is_draining() -> bool:
    """Whether this process got SIGTERM and still serves."""
    return _Process.drain_began_at is not None


@contextlib.contextmanager
def drain_on_sigterm(seconds: float, end: Callable[[], None]) -> Generator[None]:
    """Call `end` at SIGINT, or this many seconds after SIGTERM; SIGINT also ends that wait.

    The previous handlers of these signals are called at the same moment as `end`, not earlier.
    """
    loop = asyncio.get_running_loop()
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    waits: list[asyncio.TimerHandle] = []

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(wait if number == signal.SIGTERM and seconds else pass_on, number)

    def wait(number: int) -> None:
        now = time.monotonic()
        _Process.drain_began_at = _Process.drain_began_at or now
        left = _Process.drain_began_at + seconds - now
        if not waits:
            log.info("draining", seconds=round(left, 1))
            waits.append(loop.call_later(left, pass_on, number))

    def pass_on(number: int) -> None:
        for timer in waits:
            timer.cancel()
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
