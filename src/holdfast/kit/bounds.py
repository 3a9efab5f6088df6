"""How many connections one server may have: in all, from one address, and with answers that nobody reads."""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

import structlog
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from holdfast.kit.limits import source
from holdfast.kit.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, ErrorBody, Problem

UNREAD_BYTES = 256 * 1024 * 1024
"""The most bytes of answers that may wait for slow clients; above it, the one that has waited longest is cut off."""

REFUSING = 100
"""The most connections at once that are told why they are refused; others are closed without a word."""

MOST_FILES = 65_536
"""Open files where the system sets no limit."""

SPARE_FILES = 200
"""Open files kept for everything but connections: the database, files, and connections that are refused."""

WARNING_SECONDS = 60

log = structlog.get_logger()


class Unread(Protocol):
    """A connection whose client does not read."""

    def abort(self) -> None: ...


@dataclass
class Bounds:
    """The connections of one server, and how many there may be.

    most                connections at once
    most_per_address    of them from one address; those of trusted proxies are not counted by address
    header_seconds      how long a client may take to send headers
    write_seconds       how long a client may read less than `READ_BYTES` of a waiting answer
    """

    most: int
    most_per_address: int
    trusted_proxies: str = ""
    error_body: ErrorBody = Problem.body
    header_seconds: float = 10
    write_seconds: float = 30
    _open: int = 0
    _refused: int = 0
    _by_source: Counter[str] = field(default_factory=Counter[str])
    _unread: dict[Unread, int] = field(default_factory=dict[Unread, int])
    _unread_bytes: int = 0
    _warned_at: float = float("-inf")

    @cached_property
    def _trusted(self) -> Container[str]:
        """The addresses of proxies, as uvicorn reads the setting."""
        return ProxyHeadersMiddleware(cast(Any, None), self.trusted_proxies).trusted_hosts

    def source(self, client: tuple[str, int] | None) -> str | None:
        """What a connection is counted by; None for a trusted proxy, and for a local socket."""
        return None if client is None or client[0] in self._trusted else source(client[0])

    def enter(self, client: str | None) -> Problem | None:
        """Count a connection. The problem to answer with, if there are too many."""
        problem = None
        if client is not None and self._by_source[client] >= self.most_per_address:
            problem = RATE_LIMITED(
                f"At most {self.most_per_address} connections may be open from one address.",
                hint="Close some of them, or use one of them for this request.",
                retry_after=1,
            )
        elif self._open >= self.most:
            problem = SERVICE_UNAVAILABLE("Too many connections are open.", retry_after=1)
        if problem is None:
            self._open += 1
            self._by_source.update(() if client is None else (client,))
        else:
            self._refused += 1
            self._warn(problem, client)
        return problem

    @property
    def is_flooded(self) -> bool:
        """Whether so many connections are being refused that no more can be told why."""
        return self._refused > REFUSING

    def leave(self, client: str | None, problem: Problem | None) -> None:
        """A counted connection has closed."""
        if problem:
            self._refused -= 1
            return
        self._open -= 1
        if client is not None:
            self._by_source[client] -= 1
            if not self._by_source[client]:
                del self._by_source[client]

    def wait(self, connection: Unread, size: int) -> None:
        """Count what a connection does not read. If there is too much, those that have waited longest are cut off."""
        self._unread[connection] = size
        self._unread_bytes += size
        while self._unread_bytes > UNREAD_BYTES:
            longest = next(iter(self._unread))
            self.forget(longest)
            longest.abort()

    def forget(self, connection: Unread) -> None:
        """The connection has read what waited, or has closed."""
        self._unread_bytes -= self._unread.pop(connection, 0)

    def _warn(self, problem: Problem, client: str | None) -> None:
        """Log a refusal, at most once a minute: the metrics count them all."""
        if time.monotonic() > self._warned_at + WARNING_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("connections are refused", reason=problem.message, client=client)


def files_for_connections() -> int:
    """How many files this process may open for connections, once its limit is raised as far as is allowed."""
    if sys.platform == "win32":
        return MOST_FILES
    import resource

    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        most = MOST_FILES
    if most > allowed != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            allowed = most
    return MOST_FILES if allowed == resource.RLIM_INFINITY else max(1, allowed - SPARE_FILES)
