"""How a process starts and ends: garbage is not collected during imports, and signals end it in order.

Imports create many objects that stay, and no garbage. Collecting garbage meanwhile takes a quarter of the start.
"""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Generator
from types import FrameType


@contextlib.contextmanager
def importing() -> Generator[None]:
    """Collect no garbage inside the block. Objects created before its end are excluded from later collections."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def end_in_order() -> None:
    """Let SIGTERM, and SIGHUP when the terminal closes, end this process as Ctrl-C does: with its exit handlers.

    Without this, they would leave the bundled PostgreSQL running. What serves, or works in the background, later has a
    handler of SIGTERM of its own. A process that ignores SIGHUP, as under `nohup`, goes on to ignore it.
    """
    signal.signal(signal.SIGTERM, _exit)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)


def _exit(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _terminate(_: int, __: FrameType | None) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
