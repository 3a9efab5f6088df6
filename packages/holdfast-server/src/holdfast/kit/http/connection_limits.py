"""Limits of the connections of one server: in total, from one address, and with unread answers.

When no connection is left, one of the address that holds the most is closed for an address that holds few
(`AddressHoldings`).
"""

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
from holdfast.kit.contract.client import WIDE_CONNECTIONS, path_of, source
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, ErrorBody, Problem
from holdfast.kit.http.address_holdings import AddressHoldings
from holdfast.kit.http.request_pace import Pace

MAX_UNREAD_BYTES = 256 * 1024 * 1024
"""Bytes of answers that may wait for slow clients. Above it, the address with the most of them loses connections."""

MAX_EXPLAINED_REFUSALS = 100
"""Refused connections at a time that get an answer with the reason; others are closed without an answer."""

DEFAULT_MAX_FILES = 65_536
"""The limit of open files where the system sets none."""

RESERVED_FILES = 200
"""Open files reserved for everything except connections: the database, files, and refused connections."""

WARNING_INTERVAL_SECONDS = 60

CONNECTIONS = Bound(
    name="Open connections",
    service="both",
    total="`MAX_CONNECTIONS`, or what the system allows",
    tenant="none",
    address=f"`MAX_CONNECTIONS_PER_ADDRESS`, a /48 {WIDE_CONNECTIONS} times as many; `TRUSTED_PROXIES` any number",
    reserved="-",
    stranger="Nothing: the address with the most gives way.",
)
UNREAD_ANSWERS = Bound(
    name="Bytes of answers that are unread",
    service="both",
    total=f"{MAX_UNREAD_BYTES // 1_048_576} MiB; each connection for 30 seconds",
    tenant="none",
    address="what others leave; the address with the most loses its oldest answer",
    reserved="-",
    stranger="Nothing: its own are dropped first.",
)
EXPLAINED_REFUSALS = Bound(
    name="Refused connections that are told why",
    service="both",
    total=f"{MAX_EXPLAINED_REFUSALS}; others are closed without an answer",
    tenant="none",
    address="none",
    reserved="-",
    stranger="Others do not learn why they are refused.",
)

log = structlog.get_logger()


class LimitedConnection(Protocol):
    """A connection that the limits can close."""

    def abort(self) -> None: ...

    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        ...


@dataclass
class ConnectionLimits:
    """Counts the connections of one server, and limits them.

    max_connections                the maximum number of open connections
    max_connections_per_address    the maximum from one address, of IPv6 from one network of /64, four times as many
                                   from one of /48; connections of trusted proxies are not counted by address
    header_seconds                 the seconds a client may take to send headers
    pace                           the pace at which requests are begun
    write_seconds                  the seconds for which a client may read less than `MIN_READ_BYTES` of a waiting
                                   answer
    """

    max_connections: int
    max_connections_per_address: int
    trusted_proxies: str = ""
    error_body: ErrorBody = Problem.body
    header_seconds: float = 10
    write_seconds: float = 30
    pace: Pace = field(default_factory=Pace)
    _open: int = 0
    _refused: int = 0
    _by_source: Counter[str] = field(default_factory=Counter[str])
    _sources: dict[LimitedConnection, str] = field(default_factory=dict[LimitedConnection, str])
    """The open connections that are counted by address, each with its source."""
    _holdings: AddressHoldings[LimitedConnection] = field(default_factory=AddressHoldings[LimitedConnection])
    _unread: dict[LimitedConnection, int] = field(default_factory=dict[LimitedConnection, int])
    _unread_bytes: int = 0
    _warned_at: float = float("-inf")

    @cached_property
    def _trusted(self) -> Container[str]:
        """The addresses of trusted proxies, as uvicorn reads the setting."""
        return ProxyHeadersMiddleware(cast(Any, None), self.trusted_proxies).trusted_hosts

    def source(self, client: tuple[str, int] | None) -> str | None:
        """The name that a connection is counted under; None for a trusted proxy and for a local socket."""
        return None if client is None or client[0] in self._trusted else source(client[0])

    def enter(self, client: str | None, connection: LimitedConnection) -> Problem | None:
        """Count a connection. Returns the problem to answer with if there are too many.

        If there are too many together, the address that has the most of them loses one to an address that has fewer.
        """
        problem = None
        if client is not None and (exceeded := self._exceeded(client)):
            problem = RATE_LIMITED(
                f"At most {exceeded} connections may be open from one address.",
                hint="Close some of them, or use one of them for this request.",
                retry_after=1,
            )
        elif self._open >= self.max_connections and not self._make_room(client):
            problem = SERVICE_UNAVAILABLE("Too many connections are open.", retry_after=1)
        if problem is None:
            self._open += 1
            if client is not None:
                self._by_source.update(path_of(client))
                self._sources[connection] = client
                self._holdings.add(client, connection)
        else:
            self._refused += 1
            self._warn(problem, client)
        return problem

    def _exceeded(self, client: str) -> int | None:
        """The limit that an address, or the network that it is in, has reached; None: it has room."""
        *wide_networks, _ = path_of(client)
        limits = {client: self.max_connections_per_address}
        limits |= dict.fromkeys(wide_networks, WIDE_CONNECTIONS * self.max_connections_per_address)
        return next((limit for name, limit in limits.items() if self._by_source[name] >= limit), None)

    @property
    def is_flooded(self) -> bool:
        """Whether too many connections are being refused to answer another one with the reason."""
        return self._refused > MAX_EXPLAINED_REFUSALS

    def leave(self, client: str | None, connection: LimitedConnection, problem: Problem | None) -> None:
        """Stop counting a connection that has closed."""
        if problem:
            self._refused -= 1
        elif client is None:
            self._open -= 1
        elif connection in self._sources:
            self._stop_counting(connection)

    def _make_room(self, client: str | None) -> bool:
        """Close a connection of the address that has the most. Returns whether there was one."""
        excess = client and self._holdings.find_excess(client, lambda connection: connection.is_idle())
        if not excess:
            return False
        self._warn(SERVICE_UNAVAILABLE("The address with the most connections loses some."), self._sources[excess])
        self._stop_counting(excess)
        excess.abort()
        return True

    def _stop_counting(self, connection: LimitedConnection) -> None:
        source = self._sources.pop(connection)
        self._open -= 1
        self._holdings.remove(source, connection)
        for name in path_of(source):
            self._by_source[name] -= 1
            if not self._by_source[name]:
                del self._by_source[name]

    def wait(self, connection: LimitedConnection, size: int) -> None:
        """Count unread bytes of a connection.

        If there are too many, close the connections that have waited longest, of the address with the most bytes.
        """
        self._unread[connection] = size
        self._unread_bytes += size
        while self._unread_bytes > MAX_UNREAD_BYTES:
            longest = self._longest_of_largest()
            self.forget(longest)
            longest.abort()

    def _longest_of_largest(self) -> LimitedConnection:
        """The connection that has waited longest, of the address that has left the most bytes unread."""
        unread: Counter[str] = Counter()
        for connection, size in self._unread.items():
            unread[self._address_of(connection)] += size
        [(largest, _)] = unread.most_common(1)
        return next(connection for connection in self._unread if self._address_of(connection) == largest)

    def _address_of(self, connection: LimitedConnection) -> str:
        """The address of a connection. All connections of trusted proxies count as one."""
        source = self._sources.get(connection)
        return path_of(source)[0] if source else ""

    def forget(self, connection: LimitedConnection) -> None:
        """Stop counting the unread bytes of a connection that has read them or has closed."""
        self._unread_bytes -= self._unread.pop(connection, 0)

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

    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard_limit == resource.RLIM_INFINITY:
        hard_limit = DEFAULT_MAX_FILES
    if hard_limit > soft_limit != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            soft_limit = hard_limit
    return DEFAULT_MAX_FILES if soft_limit == resource.RLIM_INFINITY else max(1, soft_limit - RESERVED_FILES)
