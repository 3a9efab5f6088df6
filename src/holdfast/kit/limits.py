"""Rate limits: so many requests in a window that starts with the first of them, per key or per address.

Counted in memory by default; `redis://` (Redis or Valkey) when several processes share their limits.
"""

import asyncio
import math
import time
from contextlib import nullcontext
from functools import partial
from typing import Any

import structlog
from limits import RateLimitItem
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from holdfast.kit.problems import RATE_LIMITED

log = structlog.get_logger()


class Limits:
    """The named limits of one service."""

    def __init__(self, storage_url: str, limits: dict[str, RateLimitItem]) -> None:
        storage = storage_from_string(f"async+{storage_url}")
        assert isinstance(storage, Storage)
        self._storage = storage
        self._limiter = FixedWindowRateLimiter(storage)
        self._limits = limits
        self._blind_until = 0.0
        # Memory answers at once, and a timer costs a third of what counting does.
        self._patiently = nullcontext if isinstance(storage, MemoryStorage) else partial(asyncio.timeout, PATIENCE)

    async def hit(self, name: str, who: str) -> None:
        """Count one request of `who`. Raises `rate_limited` with `retry_after` in whole seconds."""
        limit = self._limits[name]
        if time.monotonic() < self._blind_until:
            return
        try:
            async with self._patiently():
                if await self._limiter.hit(limit, name, who):
                    return
                window = await self._limiter.get_window_stats(limit, name, who)
        except Exception as error:
            # Counters that cannot be reached must not stop the service, nor slow it: let requests through for a while.
            log.warning("rate limits unavailable", error=str(error) or type(error).__name__)
            self._blind_until = time.monotonic() + PATIENCE
            return
        wait = max(1, math.ceil(window.reset_time - time.time()))
        raise RATE_LIMITED(f"At most {limit.amount} requests per {_window(limit)} are allowed here.", retry_after=wait)

    async def close(self) -> None:
        """Let go of the connections to a shared storage."""
        bridge: Any = getattr(self._storage, "bridge", None)  # what a storage outside this process has
        if bridge:
            bridge.storage.connection_pool.disconnect()


PATIENCE = 0.5
"""Seconds a counter may take to answer, and to be left alone after it did not."""


def _window(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"
