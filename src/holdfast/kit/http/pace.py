"""The pace at which a process begins requests.

In one turn of its event loop a process reads every connection on which a request has arrived. With thousands of clients
a turn would take hundreds of milliseconds, and whoever needs the database needs several turns. So a turn begins a
limited number of requests, and fewer while turns take long. The others wait in the order in which they arrived.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from holdfast.kit.contract.bounds import Bound

REQUESTS_IN_A_TURN = 128
"""Requests that are begun in one turn at most, at 50 to 200 µs each."""

MIN_REQUESTS_IN_A_TURN = 8
"""Requests that are begun in one turn at least, however long it takes. A page with a form costs a millisecond."""

TURN_SECONDS = 0.01
"""The processor time of a turn that is aimed at while requests wait."""

BEGUN_REQUESTS = Bound(
    name="Requests that are begun in one turn of the event loop",
    service="both",
    total=f"{REQUESTS_IN_A_TURN} in a process, down to {MIN_REQUESTS_IN_A_TURN} while they cost much",
    tenant="none",
    address="none: in order of arrival, and at most one for each connection",
    reserved="health checks, metrics, the console and messages of partners do not wait",
    stranger="Some turns of 10 ms: as many requests before those of others as it has connections.",
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
"""The beginnings of requests that never wait: signs of life, the console with the check-in, messages of partners."""


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
        self._most = REQUESTS_IN_A_TURN
        """How many requests a turn begins at present."""
        self._room = REQUESTS_IN_A_TURN
        """How many requests may still be begun. When it is used up, it is there again in the next turn."""
        self._began_at = 0.0
        """What the clock showed when the present turn began, if it has used up its room."""
        self._waiting: deque[WaitingRequest] = deque()

    def begins(self, loop: asyncio.AbstractEventLoop, request: bytes) -> bool:
        """Whether a request, of which these are the first bytes, is begun at once."""
        if not self._room:
            return request.startswith(URGENT)
        self._use(loop)
        if not self._room:
            self._began_at = self._clock()
        return True

    def add(self, request: WaitingRequest) -> None:
        """Begin a request, which was not begun at once, in a later turn."""
        self._waiting.append(request)

    def _use(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room -= 1
        if not self._room:
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        took, self._began_at = now - self._began_at, now
        # By half or twice at most, since turns differ: in some of them the answers of a whole batch are written.
        fitting = int(self._most * min(2.0, max(0.5, TURN_SECONDS / max(took, 0.001))))
        self._most = self._room = min(REQUESTS_IN_A_TURN, max(MIN_REQUESTS_IN_A_TURN, fitting))
        while self._waiting and self._room:
            self._use(loop)
            self._waiting.popleft().begin()
