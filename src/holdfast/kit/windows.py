"""Counts requests in memory, in windows that start with the first of them.

The clock is monotonic: when the clock of the machine is set, no window becomes longer or shorter.
"""

import time

from limits.aio.storage import MemoryStorage

ROOM = 1000
"""Windows that are kept at least before those that have ended are removed."""


class Windows(MemoryStorage):
    """The storage of fixed windows. The library's own one measures them by the time of day."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[str, tuple[int, float]] = {}
        self._room = ROOM

    def __len__(self) -> int:
        return len(self._windows)

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Count requests. Returns how many there are in this window."""
        now = time.monotonic()
        counted, end = self._windows.get(key, (0, now))
        if end <= now:
            counted, end = 0, now + expiry
        counted += amount
        self._windows[key] = counted, end
        if len(self._windows) > self._room:
            self._windows = {each: window for each, window in self._windows.items() if window[1] > now}
            self._room = max(ROOM, 2 * len(self._windows))
        return counted

    async def get(self, key: str) -> int:
        """How many requests there are in this window."""
        counted, end = self._windows.get(key, (0, 0.0))
        return counted if end > time.monotonic() else 0

    async def get_expiry(self, key: str) -> float:
        """When this window ends, as a time of day of this moment."""
        _, end = self._windows.get(key, (0, 0.0))
        return time.time() + max(0.0, end - time.monotonic())
