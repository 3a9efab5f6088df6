"""Rate limits: at most N requests per key, tenant or address in a window, which starts with the first request. And
slots: at most N concurrent pieces of work of one owner.

Requests are counted in memory, or with `redis://` in Redis or Valkey, so that several processes share their limits.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

import structlog
from limits import RateLimitItem
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE
from holdfast.kit.environment.metrics import RATE_LIMIT_FAILURES

log = structlog.get_logger()

MIN_WINDOWS = 1000
"""The number of windows from which on ended windows are removed."""

STORAGE_TIMEOUT_SECONDS = 0.5
"""Seconds that the shared storage may take to answer. After a failure, it is not used for as many seconds."""


class Limits:
    """The named limits of one service.

    limits      the limits of requests of one caller: a key, a token, an address
    together    the limits of requests of all callers of a tenant together, where there are such limits
    refused     the limits of refused requests of one caller; refused requests do not count against `limits`
    """

    def __init__(
        self,
        storage_url: str,
        limits: Mapping[str, RateLimitItem],
        *,
        together: Mapping[str, RateLimitItem] | None = None,
        refused: Mapping[str, RateLimitItem] | None = None,
    ) -> None:
        self._windows = WindowsInMemory() if storage_url == "memory://" else SharedWindows(storage_url)
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

    async def count_as_refused(self, name: str, caller: Caller) -> None:
        """Move a request that was admitted and then refused to the limit of refused requests, where there is one."""
        if refused := self._refused.get(name):
            # Only counted: the limits apply from the next request on.
            await self._windows.count(refused, f"refused {name}", caller.name, 1)
            await self._windows.count(self._limits[name], name, caller.name, -1)

    async def _count(self, limit: RateLimitItem, name: str, who: str, times: int, whose: str = "") -> None:
        wait = await self._windows.count(limit, name, who, times)
        if wait is not None:
            problem = RATE_LIMITED(
                f"At most {limit.amount} requests per {_window_text(limit)} are allowed here{whose}.",
                retry_after=max(1, math.ceil(wait)),
            )
            problem.counted = "network" if is_network(who) else "account" if is_account(who) else ""
            raise problem

    async def close(self) -> None:
        """Close the connections to a shared storage."""
        await self._windows.close()


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
        self._room = MIN_WINDOWS

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
        if len(self._windows) > self._room:
            self._windows = {other_key: window for other_key, window in self._windows.items() if window[1] > now}
            self._room = max(MIN_WINDOWS, 2 * len(self._windows))

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


SLOT_TIMEOUT_SECONDS = 5
"""Seconds that requests wait for other work of the same owner."""

MAX_WAITING = 200
"""The maximum number of waiting pieces of work of one owner."""


class Slots:
    """A semaphore for each owner: at most `at_once` pieces of its work run concurrently, in order of arrival.

    At most `MAX_WAITING` others of the same owner wait.

    patience       the maximum number of seconds that a piece of work waits; None: no maximum
    retry_after    returns the seconds after which refused work should come again
    """

    def __init__(self, at_once: int, patience: float | None = None, retry_after: Callable[[], int] = lambda: 1) -> None:
        self._at_once = at_once
        self._patience = patience
        self._retry_after = retry_after
        self._owners: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, owner: Hashable) -> AsyncGenerator[None]:
        """Hold a slot while the block lasts. Raises `service_unavailable` if too much work waits, or too long."""
        semaphore, unfinished = self._owners.get(owner) or (asyncio.Semaphore(self._at_once), 0)
        if unfinished >= self._at_once + MAX_WAITING:
            raise SERVICE_UNAVAILABLE("Too much of your own work waits already.", retry_after=self._retry_after())
        self._owners[owner] = semaphore, unfinished + 1
        try:
            await self._acquire(semaphore)
            try:
                yield
            finally:
                semaphore.release()
        finally:
            semaphore, unfinished = self._owners.pop(owner)
            if unfinished > 1:
                self._owners[owner] = semaphore, unfinished - 1

    async def _acquire(self, semaphore: asyncio.Semaphore) -> None:
        if not semaphore.locked():
            await semaphore.acquire()  # it does not wait, so a timeout would only cost time
            return
        try:
            async with asyncio.timeout(self._patience):
                await semaphore.acquire()
        except TimeoutError as error:
            message = "Your earlier requests have not finished in time."
            raise SERVICE_UNAVAILABLE(message, retry_after=self._retry_after()) from error


LOCAL = "a local socket"


def address(scope: Mapping[str, Any]) -> str:
    """The source of a request for rate limits: an IPv4 address, an IPv6 network of /64, or a local socket."""
    return source(scope["client"][0]) if scope.get("client") else LOCAL


def is_network(who: str) -> bool:
    """Whether requests are counted by their source."""
    return who == LOCAL or who.startswith(("address ", "network "))


def is_account(who: str) -> bool:
    """Whether requests are counted by account, signed-in person or tenant."""
    return who.startswith(("account ", "person ", "tenant "))


@lru_cache(10_000)
def source(host: str) -> str:
    """The source of requests from an address, for rate limits."""
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
        if isinstance(ip, IPv6Address) and not ip.ipv4_mapped:
            return f"network {int(ip) >> 64:x}"
    return f"address {host}"
