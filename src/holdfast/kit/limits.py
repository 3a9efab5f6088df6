"""Rate limits: at most N requests per key, tenant or address in a window, which starts with the first of them. And
slots: at most N pieces of work of one owner at once.

Requests are counted in memory, or with `redis://` in Redis or Valkey, so that several processes share their limits.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Hashable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

import structlog
from limits import RateLimitItem
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from holdfast.kit.caller import Caller
from holdfast.kit.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, Problem

log = structlog.get_logger()

ROOM = 1000
"""Windows that are kept at least before those that have ended are removed."""

PATIENCE = 0.5
"""Seconds the shared storage may take to answer; and seconds for which nothing is counted after it did not."""


class Limits:
    """The named limits of one service.

    limits      how many requests one caller may make: a key, a token, an address
    together    how many all callers of a tenant may make together, for those limits that have it
    refused     how many requests of one caller may be refused; these do not count among the others
    """

    def __init__(
        self,
        storage_url: str,
        limits: Mapping[str, RateLimitItem],
        *,
        together: Mapping[str, RateLimitItem] | None = None,
        refused: Mapping[str, RateLimitItem] | None = None,
    ) -> None:
        self._windows = InMemory() if storage_url == "memory://" else Shared(storage_url)
        self._limits = limits
        self._together = together or {}
        self._refused = refused or {}

    async def hit(self, name: str, who: str, times: int = 1) -> None:
        """Count requests of `who`. Raises `rate_limited` with `retry_after` in whole seconds."""
        await self._count(self._limits[name], name, who, times)

    async def admit(self, name: str, caller: Caller, times: int = 1) -> None:
        """Count requests of a caller, for itself and for its tenant. Raises `rate_limited`."""
        if refused := self._refused.get(name):
            await self._count(refused, f"refused {name}", caller.name, 0)
        await self._count(self._limits[name], name, caller.name, times)
        if together := self._together.get(name):
            await self._count(together, f"{name} together", caller.account, times, " with all your keys together")

    async def refuse(self, name: str, caller: Caller) -> None:
        """Count a request that was admitted and then refused, where refusals have a limit of their own."""
        if refused := self._refused.get(name):
            with contextlib.suppress(Problem):  # what matters is the next request
                await self._count(refused, f"refused {name}", caller.name, 1)
            await self._count(self._limits[name], name, caller.name, -1)

    async def _count(self, limit: RateLimitItem, name: str, who: str, times: int, whose: str = "") -> None:
        wait = await self._windows.count(limit, name, who, times)
        if wait is not None:
            raise RATE_LIMITED(
                f"At most {limit.amount} requests per {_window(limit)} are allowed here{whose}.",
                retry_after=max(1, math.ceil(wait)),
            )

    async def close(self) -> None:
        """Close the connections to a shared storage."""
        await self._windows.close()


def _window(limit: RateLimitItem) -> str:
    return limit.GRANULARITY.name if limit.multiples == 1 else f"{limit.multiples} {limit.GRANULARITY.name}s"


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


SLOT_SECONDS = 5
"""The most seconds that requests wait for other work of the same owner."""

WAITING = 200
"""The most pieces of one owner's work that may wait."""


class Slots:
    """Lets at most `at_once` pieces of one owner's work run, in order of arrival. At most `WAITING` others wait.

    patience    the most seconds that a piece of work waits; None: as long as it takes
    """

    def __init__(self, at_once: int, patience: float | None = None) -> None:
        self._at_once = at_once
        self._patience = patience
        self._owners: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, owner: Hashable) -> AsyncGenerator[None]:
        """Hold a slot while the block lasts. Raises `service_unavailable` when too much work waits, or for too long."""
        semaphore, present = self._owners.get(owner) or (asyncio.Semaphore(self._at_once), 0)
        if present >= self._at_once + WAITING:
            raise SERVICE_UNAVAILABLE("Too much of your own work waits already.", retry_after=1)
        self._owners[owner] = semaphore, present + 1
        try:
            await self._acquire(semaphore)
            try:
                yield
            finally:
                semaphore.release()
        finally:
            semaphore, present = self._owners.pop(owner)
            if present > 1:
                self._owners[owner] = semaphore, present - 1

    async def _acquire(self, semaphore: asyncio.Semaphore) -> None:
        if not semaphore.locked():
            await semaphore.acquire()  # at once: a timeout would only cost time
            return
        try:
            async with asyncio.timeout(self._patience):
                await semaphore.acquire()
        except TimeoutError as error:
            raise SERVICE_UNAVAILABLE("Your earlier requests have not finished in time.", retry_after=1) from error


def address(scope: Mapping[str, Any]) -> str:
    """The source of a request, as throttles count it: an IPv4 address, an IPv6 network of /64, or a local socket."""
    return source(scope["client"][0]) if scope.get("client") else "a local socket"


@lru_cache(10_000)
def source(host: str) -> str:
    """An address, as throttles count it."""
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
        if isinstance(ip, IPv6Address) and not ip.ipv4_mapped:
            return f"network {int(ip) >> 64:x}"
    return f"address {host}"
