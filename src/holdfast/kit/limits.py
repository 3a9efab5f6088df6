"""Rate limits: at most N requests per key, tenant or address in a window, which starts with the first of them. And
slots: at most N pieces of work of one owner at once.

Requests are counted in memory, or with `redis://` in Redis or Valkey, so that several processes share their limits.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Hashable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

from limits import RateLimitItem

from holdfast.kit.caller import Caller
from holdfast.kit.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.windows import InMemory, Shared


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
