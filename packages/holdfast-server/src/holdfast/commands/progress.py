"""Progress of long work on standard error: how much of what is done, and how fast."""

import contextlib
import sys
import time
from collections.abc import Callable, Generator

from holdfast.kit.process.script_output import fitted

TERMINAL_SECONDS = 0.2
"""Seconds between two updates of the line on a terminal."""

LOG_SECONDS = 10
"""Seconds between two lines elsewhere, such as in a log."""

UNITS = ("bytes", "kB", "MB", "GB", "TB")

Count = Callable[[int], None]
"""Tells that so many more bytes are done."""


class Progress:
    """Writes lines about the work that goes on."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()

    def line(self, text: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{fitted(text, err=True)}\n")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Show on a terminal how far it is, until the next text or line replaces it. Empty: show nothing any more."""
        if self.is_terminal:
            sys.stderr.write(f"{text}\x1b[K\r")
            sys.stderr.flush()

    @contextlib.contextmanager
    def phase(self, title: str, total_bytes: int = 0) -> Generator[Count]:
        """A part of the work: its bytes are counted, and a line says at the end what it took.

        total_bytes    0 if it is not known
        """
        started = printed_at = time.monotonic()
        size = 0

        def count(more: int) -> None:
            nonlocal size, printed_at
            size += more
            now = time.monotonic()
            if now - printed_at > (TERMINAL_SECONDS if self.is_terminal else LOG_SECONDS):
                printed_at = now
                (self.show if self.is_terminal else self.line)(_state(title, size, total_bytes, now - started))

        yield count
        end = "\x1b[K" if self.is_terminal else ""
        self.line(f"{_state(title, size, 0, time.monotonic() - started)}{end}")


def size_text(size: float) -> str:
    """A size in words, such as `12.3 MB`."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size /= 1000
        unit += 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{size:.0f} {UNITS[0]}"


def _state(title: str, size: int, total_bytes: int, seconds: float) -> str:
    of_total = f" of {size_text(total_bytes)}" if total_bytes else ""
    rate = f", {size_text(size / seconds)}/s" if seconds >= 1 else ""
    return f"{title}: {size_text(size)}{of_total}{rate}"
