"""The pace at which a process begins requests.

In one turn of its event loop a process reads every connection on which a request has arrived. With thousands of clients
a turn would take hundreds of milliseconds, and a request to the database needs several turns. So a turn begins a
limited number of requests, and fewer while turns take long. The others wait. The next turns begin one of each address
in turn, so a crowd from one address waits for itself.
"""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import path_of

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
        self._requests_left = REQUESTS_IN_A_TURN
        """How many requests may still be begun. When it is used up, it is there again in the next turn."""
        self._began_at = 0.0
        """What the clock showed when the present turn began, if it has used up its requests."""
        self._urgent: Counter[str] = Counter()
        """How many urgent requests of each address were begun since the requests of the turn were used up."""
        self._waiting: OrderedDict[str, deque[WaitingRequest]] = OrderedDict()
        """What waits of each address, in the order of their next turns."""

    def begins_at_once(self, loop: asyncio.AbstractEventLoop, request: bytes, source: str | None) -> bool:
        """Whether a request, of which these are the first bytes, is begun at once.

        source    the source of its connection; None: a trusted proxy or a local socket
        """
        if not self._requests_left:
            return request.startswith(URGENT) and self._begins_urgent_at_once(source)
        self._use(loop)
        if not self._requests_left:
            self._began_at = self._clock()
        return True

    def add(self, request: WaitingRequest, source: str | None) -> None:
        """Begin a request, which was not begun at once, in a later turn."""
        self._waiting.setdefault(_address_of(source), deque()).append(request)

    def _begins_urgent_at_once(self, source: str | None) -> bool:
        address = _address_of(source)
        max_urgent = MAX_URGENT_REQUESTS_PER_ADDRESS if address else MAX_URGENT_REQUESTS
        if self._urgent[address] >= max_urgent or self._urgent.total() >= MAX_URGENT_REQUESTS:
            return False
        self._urgent[address] += 1
        return True

    def _use(self, loop: asyncio.AbstractEventLoop) -> None:
        self._requests_left -= 1
        if not self._requests_left:
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        took, self._began_at = now - self._began_at, now
        # By half or twice at most, since turns differ: in some of them the answers of a whole batch are written.
        fitting = int(self._max_requests * min(2.0, max(0.5, TURN_SECONDS / max(took, 0.001))))
        self._max_requests = self._requests_left = min(REQUESTS_IN_A_TURN, max(MIN_REQUESTS_IN_A_TURN, fitting))
        self._urgent.clear()
        while self._waiting and self._requests_left:
            self._use(loop)
            self._next_request().begin()

    def _next_request(self) -> WaitingRequest:
        """Take the request whose turn it is. If its address has more, they wait behind those of all other addresses."""
        address, requests = self._waiting.popitem(last=False)
        request = requests.popleft()
        if requests:
            self._waiting[address] = requests
        return request


def _address_of(source: str | None) -> str:
    """The address or network that takes turns; empty for all trusted proxies and local sockets."""
    return path_of(source)[0] if source else ""
