"""The time of a double."""

import time
from collections.abc import Callable


class Clock:
    """The real time plus the seconds by which a test has moved it. A move calls the listeners in `on_move`."""

    def __init__(self) -> None:
        self._moved = 0.0
        self.on_move: list[Callable[[], None]] = []

    def time(self) -> float:
        return time.time() + self._moved

    def now(self) -> int:
        """The time in whole seconds."""
        return int(self.time())

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._moved += seconds
        for listener in self.on_move:
            listener()
