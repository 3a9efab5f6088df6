"""Rate limits: so many requests in a window that starts with the first of them, per key or per address.

Counted in memory by default; `redis://` or `valkey://` when several processes share their limits.
"""

import math
import time

import structlog
from limits import RateLimitItem
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from holdfast.kit.problems import RATE_LIMITED

log = structlog.get_logger()


class Limits:
    """The named limits of one service."""

    def __init__(self, storage_url: str, limits: dict[str, RateLimitItem]) -> None:
        storage = storage_from_string(f"async+{storage_url}")
        assert isinstance(storage, Storage)
        self._limiter = FixedWindowRateLimiter(storage)
        self._limits = limits

    async def hit(self, name: str, who: str) -> None:
        """Count one request of `who`. Raises `rate_limited` with `retry_after` in whole seconds."""
        limit = self._limits[name]
        try:
            if await self._limiter.hit(limit, name, who):
                return
            window = await self._limiter.get_window_stats(limit, name, who)
        except Exception as error:
            # A counter that cannot be reached must not stop the service: let the request through and say so.
            log.warning("rate limits unavailable", error=str(error))
            return
        wait = max(1, math.ceil(window.reset_time - time.time()))
        raise RATE_LIMITED(f"At most {limit.amount} requests per {_window(limit)} are allowed here.", retry_after=wait)


def _window(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"
