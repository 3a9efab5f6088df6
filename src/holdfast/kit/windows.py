"""Counts requests in windows that start with the first of them: in memory, or in a Redis that processes share."""

import asyncio
import time
from typing import Any, Protocol

import structlog
from limits import RateLimitItem
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

log = structlog.get_logger()

ROOM = 1000
"""Windows that are kept at least before those that have ended are removed."""

PATIENCE = 0.5
"""Seconds the shared storage may take to answer; and seconds for which nothing is counted after it did not."""


class Windows(Protocol):
    """The requests of everybody, by the name of the limit and of whoever sends them."""

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        """Count so many requests; with 0, only look whether one more would be admitted.

        Returns None if they are admitted, else the seconds until the window ends.
        """
        ...

    async def close(self) -> None:
        """Close the connections to a shared storage."""
        ...


class InMemory(Windows):
    """The clock is monotonic: when the clock of the machine is set, no window becomes longer or shorter."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], tuple[int, float]] = {}
        self._room = ROOM

    def __len__(self) -> int:
        return len(self._windows)

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        now = time.monotonic()
        counted, end = self._windows.get((name, who), (0, now))
        if end <= now:
            counted, end = 0, now + limit.get_expiry()
        if times:
            self._keep((name, who), counted + times, end, now)
        # The difference of two large numbers may be a little more than the length of a window.
        return min(end - now, limit.get_expiry()) if counted + (times or 1) > limit.amount else None

    def _keep(self, key: tuple[str, str], counted: int, end: float, now: float) -> None:
        self._windows[key] = counted, end
        if len(self._windows) > self._room:
            self._windows = {each: window for each, window in self._windows.items() if window[1] > now}
            self._room = max(ROOM, 2 * len(self._windows))

    async def close(self) -> None:
        pass


class Shared(Windows):
    """Redis or Valkey, at a URL. If it fails, that neither stops nor slows the service: nothing is counted."""

    def __init__(self, url: str) -> None:
        storage = storage_from_string(f"async+{url}")
        assert isinstance(storage, Storage)
        self._storage: Any = storage
        self._limiter = FixedWindowRateLimiter(storage)
        self._blind_until = 0.0

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        if time.monotonic() < self._blind_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                count = self._limiter.hit if times else self._limiter.test
                if await count(limit, name, who, cost=times or 1):
                    return None
                window = await self._limiter.get_window_stats(limit, name, who)
        except Exception as error:
            log.warning("rate limits unavailable", error=str(error) or type(error).__name__)
            self._blind_until = time.monotonic() + PATIENCE
            return None
        return window.reset_time - time.time()

    async def close(self) -> None:
        self._storage.bridge.storage.connection_pool.disconnect()
