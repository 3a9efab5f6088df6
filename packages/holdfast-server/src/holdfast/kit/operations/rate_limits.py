"""Rate limits: at most N requests per key, tenant or address in a window, which starts with the first request.

Requests from IPv6 are counted in their network of /64, and in the network of /48 around it, which may have 16 times as
many. Counts are in memory, or with `redis://` in Redis or Valkey, so that several processes share their limits.

A limit of something that strangers share, such as the forms of one event, is a `SharedLimit`: each address has a share
of it, which others cannot use up.
"""

import asyncio
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import structlog
from limits import RateLimitItem
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import WIDE_SHARE, is_source, wide_network
from holdfast.kit.contract.problems import RATE_LIMITED
from holdfast.kit.environment.metrics import RATE_LIMIT_FAILURES

log = structlog.get_logger()

MIN_WINDOWS = 1000
"""The number of windows from which on ended windows are removed."""

STORAGE_TIMEOUT_SECONDS = 0.5
"""Seconds that the shared storage may take to answer. After a failure, it is not used for as many seconds."""


class SharedLimit(NamedTuple):
    """A limit of what all addresses do with one thing, such as the forms of one event.

    together      the limit of what all addresses do above their shares
    share         the limit of what one address does, whatever others do
    most          the limit of everything that is admitted, with all shares; None: the shares have no limit together
    wide_share    how many times the share of an address a network of /48 has
    """

    together: RateLimitItem
    share: RateLimitItem
    most: RateLimitItem | None = None
    wide_share: int = WIDE_SHARE


class Limits:
    """The named limits of one service.

    limits      the limits of requests of one caller: a key, a token, an address
    shared      the limits of requests of many addresses about one thing
    together    the limits of requests of all callers of a tenant together, where there are such limits
    refused     the limits of refused requests of one caller; refused requests do not count against `limits`
    """

    def __init__(
        self,
        storage_url: str,
        limits: Mapping[str, RateLimitItem],
        *,
        shared: Mapping[str, SharedLimit] | None = None,
        together: Mapping[str, RateLimitItem] | None = None,
        refused: Mapping[str, RateLimitItem] | None = None,
    ) -> None:
        self._windows = WindowsInMemory() if storage_url == "memory://" else SharedWindows(storage_url)
        self._limits = limits
        self._shared = shared or {}
        self._together = together or {}
        self._refused = refused or {}

    async def hit(self, name: str, who: str, times: int = 1) -> None:
        """Count requests of `who`. Raises `rate_limited` with `retry_after` in whole seconds."""
        await self._count(self._limits[name], name, who, times)

    async def hit_shared(self, name: str, thing: str, source: str) -> None:
        """Count a request of an address about a thing. Raises `rate_limited`."""
        if not await self._is_within_share(name, thing, source):
            await self._count(self._shared[name].together, name, thing, 1)
        await self._count_most(name, thing)

    async def count_for_share(self, name: str, thing: str, source: str) -> bool:
        """Count a request of an address about a thing for its share. Raises `rate_limited`.

        Returns whether the share is used up. Then `count_together` counts the request, if it is one that counts.
        """
        if await self._is_within_share(name, thing, source):
            return False
        await self._count(self._shared[name].together, name, thing, 0)
        return True

    async def count_together(self, name: str, thing: str) -> None:
        """Count a request above the share of its address, for which there was room. It is not refused any more."""
        await self._windows.count(self._shared[name].together, name, thing, 1)

    async def _is_within_share(self, name: str, thing: str, source: str) -> bool:
        """Count a request for the share of an address, and if that has room, for the share of its network of /48."""
        limit = self._shared[name]
        if await self._windows.count(limit.share, f"share of {name}", f"{thing} {source}", 1) is not None:
            return False
        wide = wide_network(source)
        if wide is None:
            return True
        wide_share = _times(limit.share, limit.wide_share)
        return await self._windows.count(wide_share, f"share of {name}", f"{thing} {wide}", 1) is None

    async def _count_most(self, name: str, thing: str) -> None:
        if most := self._shared[name].most:
            await self._count(most, f"{name} with all shares", thing, 1)

    async def admit(self, name: str, caller: Caller, times: int = 1) -> None:
        """Count requests of a caller, for itself and for its tenant. Raises `rate_limited`."""
        if refused := self._refused.get(name):
            await self._count(refused, f"refused {name}", caller.name, 0)
        await self._count(self._limits[name], name, caller.name, times)
        if together := self._together.get(name):
            await self._count(together, f"{name} together", caller.account, times, " with all your keys together")

    async def count_as_refused(self, name: str, caller: Caller) -> None:
        """Move a request that was admitted and then refused to the limit of refused requests, where there is one."""
        if refused := self._refused.get(name):
            # Only counted: the limits apply from the next request on.
            await self._move(refused, f"refused {name}", caller.name, 1)
            await self._move(self._limits[name], name, caller.name, -1)

    async def _move(self, limit: RateLimitItem, name: str, who: str, times: int) -> None:
        """Count requests, and refuse none."""
        if wide := wide_network(who):
            await self._windows.count(_wide(limit), f"{name} of a wide network", wide, times)
        await self._windows.count(limit, name, who, times)

    async def _count(self, limit: RateLimitItem, name: str, who: str, times: int, whose: str = "") -> None:
        if wide := wide_network(who):
            await self._count(_wide(limit), f"{name} of a wide network", wide, times, whose)
        wait = await self._windows.count(limit, name, who, times)
        if wait is not None:
            raise RATE_LIMITED(
                f"At most {limit.amount} requests per {_window_text(limit)} are allowed here{whose}.",
                retry_after=max(1, math.ceil(wait)),
                counted="network" if is_source(who) else "account" if is_account(who) else "",
            )

    async def close(self) -> None:
        """Close the connections to a shared storage."""
        await self._windows.close()


def _wide(limit: RateLimitItem) -> RateLimitItem:
    """The limit of an IPv6 network of /48."""
    return _times(limit, WIDE_SHARE)


def _times(limit: RateLimitItem, times: int) -> RateLimitItem:
    return type(limit)(times * limit.amount, limit.multiples)


def _window_text(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


class Windows(Protocol):
    """The counts of requests, by the names of the limit and of the caller."""

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        """Count this many requests; with 0, only check whether one more would be admitted.

        Returns None if they are admitted, else the seconds until the window ends.
        """
        ...

    async def close(self) -> None:
        """Close the connections to a shared storage."""
        ...


class WindowsInMemory(Windows):
    """Counts in memory. The clock is monotonic, so setting the clock of the machine changes no window."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], tuple[int, float]] = {}
        self._cleanup_size = MIN_WINDOWS

    def __len__(self) -> int:
        return len(self._windows)

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        now = time.monotonic()
        counted, end = self._windows.get((name, who), (0, now))
        if end <= now:
            counted, end = 0, now + limit.get_expiry()
        if times:
            self._keep((name, who), counted + times, end, now)
        # Rounding may make the difference of two large numbers a little longer than a window.
        return min(end - now, limit.get_expiry()) if counted + (times or 1) > limit.amount else None

    def _keep(self, key: tuple[str, str], counted: int, end: float, now: float) -> None:
        self._windows[key] = counted, end
        if len(self._windows) > self._cleanup_size:
            self._windows = {other_key: window for other_key, window in self._windows.items() if window[1] > now}
            self._cleanup_size = max(MIN_WINDOWS, 2 * len(self._windows))

    async def close(self) -> None:
        pass


class SharedWindows(Windows):
    """Counts in Redis or Valkey, at a URL. A failure neither stops nor slows the service: then each process counts."""

    def __init__(self, url: str) -> None:
        storage = storage_from_string(f"async+{url}")
        assert isinstance(storage, Storage)
        self._storage: Any = storage
        self._limiter = FixedWindowRateLimiter(storage)
        self._alone = WindowsInMemory()
        self._alone_until = 0.0
        self._is_outage_logged = False

    async def count(self, limit: RateLimitItem, name: str, who: str, times: int) -> float | None:
        if time.monotonic() < self._alone_until:
            return await self._alone.count(limit, name, who, times)
        try:
            async with asyncio.timeout(STORAGE_TIMEOUT_SECONDS):
                count = self._limiter.hit if times else self._limiter.test
                is_admitted = await count(limit, name, who, cost=times or 1)
                window = None if is_admitted else await self._limiter.get_window_stats(limit, name, who)
        except Exception as error:
            self._leave(error)
            return await self._alone.count(limit, name, who, times)
        self._is_outage_logged = False
        return window.reset_time - time.time() if window else None

    def _leave(self, error: Exception) -> None:
        """Count without the storage for a while. Logs this once until the storage answers again."""
        RATE_LIMIT_FAILURES.inc()
        if not self._is_outage_logged:
            log.warning("rate limits unavailable", error=str(error) or type(error).__name__)
        self._is_outage_logged = True
        self._alone_until = time.monotonic() + STORAGE_TIMEOUT_SECONDS

    async def close(self) -> None:
        self._storage.bridge.storage.connection_pool.disconnect()


def is_account(who: str) -> bool:
    """Whether requests are counted by account, signed-in person or tenant."""
    return who.startswith(("account ", "person ", "tenant "))
