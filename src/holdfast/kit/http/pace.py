"""The pace at which a process begins requests.

In one turn of its event loop a process reads every connection on which a request has arrived. With thousands of clients
a turn would take hundreds of milliseconds, and whoever needs the database needs several turns. So a turn begins a
limited number of requests. The others wait in the order in which they arrived.
"""

import asyncio
from collections import deque
from typing import Protocol

REQUESTS_IN_A_TURN = 128
"""Requests that are begun in one turn, at 50 to 200 µs each."""

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
    """Says which requests of a process are begun at once, and begins the others in later turns."""

    def __init__(self) -> None:
        self._room = REQUESTS_IN_A_TURN
        """How many requests may still be begun. When it is used up, it is there again in the next turn."""
        self._waiting: deque[WaitingRequest] = deque()

    def begins(self, loop: asyncio.AbstractEventLoop, request: bytes) -> bool:
        """Whether a request, of which these are the first bytes, is begun at once."""
        if not self._room:
            return request.startswith(URGENT)
        self._use(loop)
        return True

    def add(self, request: WaitingRequest) -> None:
        """Begin a request, which was not begun at once, in a later turn."""
        self._waiting.append(request)

    def _use(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room -= 1
        if not self._room:
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room = REQUESTS_IN_A_TURN
        while self._waiting and self._room:
            self._use(loop)
            self._waiting.popleft().begin()
