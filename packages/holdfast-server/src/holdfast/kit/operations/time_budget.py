"""A budget of seconds: how much time the work of one owner may take in a window."""

import math
import time
from collections.abc import Callable, Hashable

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import RATE_LIMITED, Problem

MIN_WINDOWS = 1_000
"""The number of windows from which on ended windows are removed."""


class TimeBudget:
    """Counts seconds of work by owner, in one process.

    bound     what is limited, for the page of all bounds
    window    the seconds after which an owner has its whole budget again
    text      what is refused, as a sentence with the placeholders `seconds` and `minutes`
    clock     returns the present time in seconds, which never goes back
    """

    def __init__(self, bound: Bound, window: float, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.bound = bound
        self._window = window
        self._text = text
        self._clock = clock
        self._spent: dict[Hashable, tuple[float, float]] = {}
        """The seconds of work of each owner, and the end of its window."""
        self._cleanup_size = MIN_WINDOWS

    def require(self, owner: Hashable, seconds: float) -> None:
        """Raise `rate_limited` if the work of an owner has taken this many seconds in its window."""
        spent, ends_at = self._spent.get(owner, (0.0, 0.0))
        seconds_left = ends_at - self._clock()
        if seconds_left > 0 and spent >= seconds:
            raise self._refusal(seconds, seconds_left)

    def spend(self, owner: Hashable, seconds: float) -> None:
        """Count work of an owner."""
        now = self._clock()
        spent, ends_at = self._spent.get(owner, (0.0, 0.0))
        if ends_at <= now:
            spent, ends_at = 0.0, now + self._window
        self._spent[owner] = spent + seconds, ends_at
        if len(self._spent) > self._cleanup_size:
            self._spent = {name: window for name, window in self._spent.items() if window[1] > now}
            self._cleanup_size = max(MIN_WINDOWS, 2 * len(self._spent))

    def _refusal(self, seconds: float, seconds_left: float) -> Problem:
        text = self._text.format(seconds=f"{seconds:g}", minutes=f"{self._window / 60:g}")
        return RATE_LIMITED(text, retry_after=max(1, math.ceil(seconds_left)))
