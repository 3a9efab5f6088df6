"""Limits of the connections of one server: in total, from one address, and with unread answers."""

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

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, ErrorBody, Problem
from holdfast.kit.contract.sources import WIDE_CONNECTIONS, path_of, source
from holdfast.kit.http.pace import Pace

MAX_UNREAD_BYTES = 256 * 1024 * 1024
"""Bytes of answers that may wait for slow clients. Above it, connections of the address with the most are closed."""

PROXIES = "trusted proxies"
"""What the unread bytes of connections without an address are counted under."""

UNREAD = Bound(
    name="Bytes of answers that clients have not read",
    service="both",
    total=f"{MAX_UNREAD_BYTES // 1024**2} MiB",
    tenant="that of its addresses",
    address="what others leave; above the total, the address or network of /48 with the most loses connections",
    reserved="-",
    stranger="Nothing: its own connections are closed first. Behind a trusted proxy, the proxy limits its clients.",
)

MAX_EXPLAINED_REFUSALS = 100
"""Refused connections at a time that get an answer with the reason; others are closed without an answer."""

DEFAULT_MAX_FILES = 65_536
"""The limit of open files where the system sets none."""

RESERVED_FILES = 200
"""Open files reserved for everything except connections: the database, files, and refused connections."""

WARNING_INTERVAL_SECONDS = 60

log = structlog.get_logger()


class UnreadConnection(Protocol):
    """A connection whose client does not read its answer."""

    def abort(self) -> None: ...


@dataclass
class ConnectionLimits:
    """Counts the connections of one server, and limits them.

    most                the maximum number of open connections
    most_per_address    the maximum from one address, of IPv6 from one network of /64, four times as many from one
                        of /48; connections of trusted proxies are not counted by address
    header_seconds      the seconds a client may take to send headers
    pace                the pace at which requests are begun
    write_seconds       the seconds for which a client may read less than `MIN_READ_BYTES` of a waiting answer
    """

    most: int
    most_per_address: int
    trusted_proxies: str = ""
    error_body: ErrorBody = Problem.body
    header_seconds: float = 10
    write_seconds: float = 30
    pace: Pace = field(default_factory=Pace)
    _open: int = 0
    _refused: int = 0
    _by_source: Counter[str] = field(default_factory=Counter[str])
    _unread: dict[UnreadConnection, tuple[int, str]] = field(default_factory=dict[UnreadConnection, tuple[int, str]])
    """The unread bytes of connections, and what they are counted under; those that have waited longest are first."""
    _unread_bytes: Counter[str] = field(default_factory=Counter[str])
    _warned_at: float = float("-inf")

    @cached_property
    def _trusted(self) -> Container[str]:
        """The addresses of trusted proxies, as uvicorn reads the setting."""
        return ProxyHeadersMiddleware(cast(Any, None), self.trusted_proxies).trusted_hosts

    def source(self, client: tuple[str, int] | None) -> str | None:
        """The name that a connection is counted under; None for a trusted proxy and for a local socket."""
        return None if client is None or client[0] in self._trusted else source(client[0])

    def enter(self, client: str | None) -> Problem | None:
        """Count a connection. Returns the problem to answer with if there are too many."""
        problem = None
        if client is not None and (exceeded := self._exceeded(client)):
            problem = RATE_LIMITED(
                f"At most {exceeded} connections may be open from one address.",
                hint="Close some of them, or use one of them for this request.",
                retry_after=1,
            )
        elif self._open >= self.most:
            problem = SERVICE_UNAVAILABLE("Too many connections are open.", retry_after=1)
        if problem is None:
            self._open += 1
            self._by_source.update(() if client is None else path_of(client))
        else:
            self._refused += 1
            self._warn(problem, client)
        return problem

    def _exceeded(self, client: str) -> int | None:
        """The limit that an address, or the network that it is in, has reached; None: it has room."""
        *wide_networks, _ = path_of(client)
        limits = {client: self.most_per_address}
        limits |= dict.fromkeys(wide_networks, WIDE_CONNECTIONS * self.most_per_address)
        return next((limit for name, limit in limits.items() if self._by_source[name] >= limit), None)

    @property
    def is_flooded(self) -> bool:
        """Whether too many connections are being refused to answer another one with the reason."""
        return self._refused > MAX_EXPLAINED_REFUSALS

    def leave(self, client: str | None, problem: Problem | None) -> None:
        """Stop counting a connection that has closed."""
        if problem:
            self._refused -= 1
            return
        self._open -= 1
        for name in () if client is None else path_of(client):
            self._by_source[name] -= 1
            if not self._by_source[name]:
                del self._by_source[name]

    def wait(self, connection: UnreadConnection, size: int, client: str | None) -> None:
        """Count unread bytes of a connection.

        If there are too many, close connections of the address or network with the most of them; of these, the ones
        that have waited longest.
        """
        group = PROXIES if client is None else path_of(client)[0]
        self._unread[connection] = size, group
        self._unread_bytes[group] += size
        while self._unread_bytes.total() > MAX_UNREAD_BYTES:
            [(largest, _)] = self._unread_bytes.most_common(1)
            longest = next(other for other, (_, counted) in self._unread.items() if counted == largest)
            self.forget(longest)
            longest.abort()

    def forget(self, connection: UnreadConnection) -> None:
        """Stop counting the unread bytes of a connection that has read them or has closed."""
        size, group = self._unread.pop(connection, (0, PROXIES))
        self._unread_bytes[group] -= size
        if not self._unread_bytes[group]:
            del self._unread_bytes[group]

    def _warn(self, problem: Problem, client: str | None) -> None:
        """Log a refusal, at most once a minute; the metrics count all of them."""
        if time.monotonic() > self._warned_at + WARNING_INTERVAL_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("connections are refused", reason=problem.message, client=client)


def files_for_connections() -> int:
    """Raise this process's limit of open files as far as allowed. Returns how many files connections may use."""
    if sys.platform == "win32":
        return DEFAULT_MAX_FILES
    import resource

    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        most = DEFAULT_MAX_FILES
    if most > allowed != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            allowed = most
    return DEFAULT_MAX_FILES if allowed == resource.RLIM_INFINITY else max(1, allowed - RESERVED_FILES)
