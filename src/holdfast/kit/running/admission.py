"""Admission: what a process refuses while its work waits too long.

A process finishes everything that it has begun. While the work in progress waits too long, new work is refused before
its body is read, and each refused client is told another time to come again.

Reads are refused first, then changes, then what follows up on accepted work. Health checks, metrics, documents, cached
pages, the console, the check-in, signing in and messages of partners are never refused here. See
`docs/decisions/0081`.
"""

import math
import time
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, ParamSpec, TypeVar

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem

P = ParamSpec("P")
A = TypeVar("A")


class Priority(Enum):
    """The seconds that work may wait while more work of this kind is still begun."""

    READ = 2
    """Reads and lists, which anybody can repeat."""

    CHANGE = 4
    """Registrations, joins, changes of stock and everything else that is stored."""

    FOLLOW_UP = 8
    """Questions about what was accepted: polls, places in a queue, tokens."""


MIN_IN_PROGRESS = 200
"""Work in progress below which nothing is refused, however slow it is."""

MEASURE_SECONDS = 1
"""How often it is measured how much work is finished a second."""

MAX_RETRY_SECONDS = 10
"""The longest time after which clients are told to come again."""


class Admission:
    """Counts the work of one process, and refuses work that would wait too long.

    clock    returns the present time in seconds, which never goes back
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.in_progress = 0
        self._began = 0.0
        """The sum of the times at which the work in progress began."""
        self._finished = 0
        self._measured_at = clock()
        self._rate = 1.0
        """How much work was finished a second when it was measured."""
        self._next_turn = 0.0
        """The time at which the last refused client comes again."""

    def counted(self, run: Callable[P, Coroutine[Any, Any, A]]) -> Callable[P, Coroutine[Any, Any, A]]:
        """Return the same function, whose calls are counted as work in progress."""

        async def run_counted(*arguments: P.args, **options: P.kwargs) -> A:
            began = self._clock()
            self.in_progress += 1
            self._began += began
            is_finished = True
            try:
                return await run(*arguments, **options)
            except Problem as problem:
                is_finished = problem.type is not SERVICE_UNAVAILABLE
                raise
            finally:
                self._measure(self._clock())
                self._finished += is_finished
                self.in_progress -= 1
                self._began = self._began - began if self.in_progress else 0.0

        return run_counted

    def require_room(self, priority: Priority) -> None:
        """Raise `service_unavailable` if the work in progress waits too long for more work of this kind."""
        if self.in_progress < MIN_IN_PROGRESS:
            return
        # Work that is done in order of arrival has been there, on average, for half of the time that it takes.
        seconds = 2 * (self._clock() - self._began / self.in_progress)
        if seconds >= priority.value:
            message = f"Work waits for {seconds:.0f} seconds. This request was not begun."
            raise SERVICE_UNAVAILABLE(message, retry_after=self.retry_after())

    def retry_after(self) -> int:
        """The seconds after which a refused client should come again.

        Each client gets a turn of its own, so that refused clients come again as fast as work is finished.
        """
        now = self._clock()
        self._measure(now)
        self._next_turn = min(max(self._next_turn, now) + 1 / self._rate, now + MAX_RETRY_SECONDS)
        return math.ceil(self._next_turn - now)

    def _measure(self, now: float) -> None:
        """Measure how much work was finished a second, if the last time is long enough ago."""
        if now >= self._measured_at + MEASURE_SECONDS:
            self._rate = max(1.0, self._finished / (now - self._measured_at))
            self._measured_at, self._finished = now, 0
