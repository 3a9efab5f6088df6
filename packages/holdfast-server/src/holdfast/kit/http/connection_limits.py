"""Limits of the connections of one server: in total, from one address, and with unread answers.

When no connection is left, one of the address that holds the most is closed for an address that holds few
(`AddressHoldings`). So what a crowd from few addresses has taken is given to others, and no address can keep others
out.

`Pace` limits how many requests a process begins. In one turn of its event loop a process reads every connection on
which a request has arrived. With thousands of clients a turn would take hundreds of milliseconds, and a request to the
database needs several turns. So a turn begins a limited number of requests, and fewer while turns take long. The others
wait. The next turns begin one of each address in turn, so a crowd from one address waits for itself.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

import structlog
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import WIDE_CONNECTIONS, path_of, source
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, ErrorBody, Problem

T = TypeVar("T")

MAX_COMPARED = 32
"""How many of the newest things of one address are compared, to find the one that gives way."""


class AddressHoldings(Generic[T]):
    """The things that each address holds. All networks of /64 in one of /48 count as one address.

    Each step takes the same time, however many things and addresses there are.
    """

    def __init__(self) -> None:
        self._things: dict[str, dict[T, None]] = {}
        """The things of each address, the oldest first."""
        self._addresses: dict[int, dict[str, None]] = {}
        """The addresses, by the number of things that they hold."""
        self._max_held = 0

    def __len__(self) -> int:
        return len(self._things)

    def add(self, source: str, thing: T) -> None:
        address = path_of(source)[0]
        things = self._things.setdefault(address, {})
        self._move(address, len(things), len(things) + 1)
        things[thing] = None

    def remove(self, source: str, thing: T) -> None:
        """Remove a thing that was added."""
        address = path_of(source)[0]
        things = self._things[address]
        del things[thing]
        self._move(address, len(things) + 1, len(things))
        if not things:
            del self._things[address]

    def find_excess(self, source: str, is_idle: Callable[[T], bool] = lambda _: True) -> T | None:
        """Find what the address that holds the most has to give to an address that wants one more.

        That is one of its newest things, best an idle one. None: no address would then hold as many as the one that
        wants it, or more.
        """
        mine = self._things.get(path_of(source)[0], {})
        if self._max_held < len(mine) + 2:
            return None
        largest = next(iter(self._addresses[self._max_held]))
        newest = [*itertools.islice(reversed(self._things[largest]), MAX_COMPARED)]
        return next((thing for thing in newest if is_idle(thing)), newest[0])

    def _move(self, address: str, before: int, after: int) -> None:
        """Remember that an address holds one thing more or less than before."""
        if before:
            del self._addresses[before][address]
        if after:
            self._addresses.setdefault(after, {})[address] = None
        if before and not self._addresses[before]:
            del self._addresses[before]
        if after > self._max_held or (before == self._max_held and before not in self._addresses):
            self._max_held = after


REQUESTS_IN_A_TURN = 128
"""Requests that are begun in one turn at most, at 50 to 200 µs each."""

MIN_REQUESTS_IN_A_TURN = 8
"""Requests that are begun in one turn at least, however long it takes. A page with a form costs a millisecond."""

MAX_URGENT_REQUESTS = 32
"""Urgent requests that are begun in one turn besides the others. Further ones wait as others do."""

MAX_URGENT_REQUESTS_PER_ADDRESS = 8
"""Urgent requests of one address that are begun in one turn. Any client can imitate one."""

TURN_SECONDS = 0.01
"""The processor time of a turn that is aimed at while requests wait."""

BEGUN_REQUESTS = Bound(
    name="Requests begun in one turn of the event loop",
    service="both",
    total=f"{REQUESTS_IN_A_TURN}, down to {MIN_REQUESTS_IN_A_TURN} while they cost much",
    tenant="none",
    address="one, in turns, also of a /48; `TRUSTED_PROXIES` are one address",
    reserved=f"{MAX_URGENT_REQUESTS} more for health checks, metrics, console and partners, "
    f"{MAX_URGENT_REQUESTS_PER_ADDRESS} for one address",
    stranger="Others wait some turns of 10 ms.",
)

URGENT = tuple(
    f"{method} {path}".encode()
    for method, path in (
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/console"),
        ("POST", "/console"),
        ("POST", "/webhooks"),
        ("POST", "/stripe/webhook"),
    )
)
"""The beginnings of urgent requests: signs of life, the console with the check-in, messages of partners."""


class WaitingRequest(Protocol):
    """A request that has arrived and was not begun."""

    def begin(self) -> None: ...


class Pace:
    """Says which requests of a process are begun at once, and begins the others in later turns.

    clock    returns the seconds of the processor that the thread has used: a turn that other processes hold up does
             not become shorter by beginning less
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._max_requests = REQUESTS_IN_A_TURN
        """How many requests a turn begins at present."""
        self._room = REQUESTS_IN_A_TURN
        """How many requests may still be begun. When it is used up, it is there again in the next turn."""
        self._began_at = 0.0
        """What the clock showed when the present turn began, if it has used up its room."""
        self._urgent: Counter[str] = Counter()
        """How many urgent requests of each address were begun since the room was used up."""
        self._waiting: OrderedDict[str, deque[WaitingRequest]] = OrderedDict()
        """What waits of each address, in the order of their next turns."""

    def begins(self, loop: asyncio.AbstractEventLoop, request: bytes, source: str | None) -> bool:
        """Whether a request, of which these are the first bytes, is begun at once.

        source    the source of its connection; None: a trusted proxy or a local socket
        """
        if not self._room:
            return request.startswith(URGENT) and self._begins_urgent(source)
        self._use(loop)
        if not self._room:
            self._began_at = self._clock()
        return True

    def add(self, request: WaitingRequest, source: str | None) -> None:
        """Begin a request, which was not begun at once, in a later turn."""
        self._waiting.setdefault(_address_of(source), deque()).append(request)

    def _begins_urgent(self, source: str | None) -> bool:
        address = _address_of(source)
        max_urgent = MAX_URGENT_REQUESTS_PER_ADDRESS if address else MAX_URGENT_REQUESTS
        if self._urgent[address] >= max_urgent or self._urgent.total() >= MAX_URGENT_REQUESTS:
            return False
        self._urgent[address] += 1
        return True

    def _use(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room -= 1
        if not self._room:
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        took, self._began_at = now - self._began_at, now
        # By half or twice at most, since turns differ: in some of them the answers of a whole batch are written.
        fitting = int(self._max_requests * min(2.0, max(0.5, TURN_SECONDS / max(took, 0.001))))
        self._max_requests = self._room = min(REQUESTS_IN_A_TURN, max(MIN_REQUESTS_IN_A_TURN, fitting))
        self._urgent.clear()
        while self._waiting and self._room:
            self._use(loop)
            self._next_request().begin()

    def _next_request(self) -> WaitingRequest:
        """Take the request whose turn it is. Its address goes to the end of the line."""
        address, requests = self._waiting.popitem(last=False)
        request = requests.popleft()
        if requests:
            self._waiting[address] = requests
        return request


def _address_of(source: str | None) -> str:
    """The address or network that takes turns; empty for all trusted proxies and local sockets."""
    return path_of(source)[0] if source else ""


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
