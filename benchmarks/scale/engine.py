"""The core of a discrete-event simulation: a clock, cores that are shared, and locks.

Actions are called in the order of their times. What is due at the same time is called in the order in which it was
planned, so that every run gives the same result.
"""

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial

Action = Callable[[], object]


class Simulation:
    """A clock, and the actions that are planned."""

    def __init__(self) -> None:
        self.now = 0.0
        """The present time in seconds."""
        self._planned: list[tuple[float, int, Action]] = []
        self._count = 0

    def after(self, seconds: float, action: Action) -> None:
        """Call an action later."""
        self._count += 1
        heapq.heappush(self._planned, (self.now + seconds, self._count, action))

    def run(self, until: float) -> None:
        """Call what is due until this time."""
        while self._planned and self._planned[0][0] <= until:
            self.now, _, action = heapq.heappop(self._planned)
            action()
        self.now = until


class Cores:
    """Processors of one machine. If more work runs than there are cores, all of it gets an equal share.

    The time that a piece of work needs is counted on a clock that goes as fast as each of them is served. So it costs
    one comparison to find what ends next, however much runs.
    """

    def __init__(self, simulation: Simulation, count: float) -> None:
        self.busy = 0.0
        """The processor seconds that were used."""
        self._simulation = simulation
        self._count = count
        self._pace = 1.0
        self._served = 0.0
        self._looked_at = 0.0
        self._running: list[tuple[float, int, Action]] = []
        self._number = 0

    def run(self, seconds: float, done: Action) -> None:
        """Work for this many processor seconds, then call `done`."""
        self._advance()
        self._number += 1
        heapq.heappush(self._running, (self._served + seconds, self._number, done))
        self._plan()

    def set_pace(self, pace: float) -> None:
        """Set the work that a processor second does from now on: 1 is what costs were measured with."""
        self._advance()
        self._pace = pace
        self._number += 1
        self._plan()

    @property
    def _speed(self) -> float:
        return self._pace * min(1.0, self._count / len(self._running))

    def _advance(self) -> None:
        if self._running:
            passed = self._simulation.now - self._looked_at
            self._served += passed * self._speed
            self.busy += passed * min(self._count, len(self._running))
        self._looked_at = self._simulation.now

    def _plan(self) -> None:
        if self._running:
            seconds = max(0.0, (self._running[0][0] - self._served) / self._speed)
            self._simulation.after(seconds, partial(self._finish, self._number, len(self._running)))

    def _finish(self, number: int, running: int) -> None:
        if (number, running) != (self._number, len(self._running)):
            return  # Something began or ended since this was planned, and another moment was planned.
        self._advance()
        served, _, done = heapq.heappop(self._running)
        self._served = max(self._served, served)
        self._plan()
        done()


class Lock:
    """A lock that one holder has at a time. Others get it in order of arrival."""

    def __init__(self) -> None:
        self._is_busy = False
        self._waiting: deque[Action] = deque()

    def take(self, action: Action) -> None:
        """Call an action as soon as the lock is free. The action has the lock until `give_back`."""
        if self._is_busy:
            self._waiting.append(action)
        else:
            self._is_busy = True
            action()

    def give_back(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._is_busy = False
