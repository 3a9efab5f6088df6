"""The platform's throttle: every call of a shop costs points, which come back at a rate.

Points are counted as the platform counts them, so a call waits here for its points instead of being refused there. Each
answer of the platform has the present points, so processes that do not know of each other share them.
"""

DEFAULT_MAX_POINTS = 1_000.0
DEFAULT_RATE = 50.0
"""The points and the rate per second of a shop before its first answer: less than any plan gives."""

MIN_WAIT_SECONDS = 0.05
"""The least seconds to wait after the platform has throttled a call."""


class PointBucket:
    """The points of one shop. Times are in seconds of any clock that does not go back."""

    def __init__(self, now: float) -> None:
        self._maximum = DEFAULT_MAX_POINTS
        self._rate = DEFAULT_RATE
        self._points = DEFAULT_MAX_POINTS
        self._at = now
        self._under_way = 0.0

    def take(self, cost: float, now: float) -> float:
        """Take points. Returns the seconds until they are available; the call may not be made earlier."""
        self._flow(now)
        self._points -= cost
        self._under_way += cost
        return max(0.0, -self._points / self._rate)

    def give_back(self, cost: float) -> None:
        """Give back the points of a call that is not made."""
        self._points += cost
        self._under_way -= cost

    def lose(self, cost: float) -> None:
        """End a call whose cost the platform did not tell."""
        self._under_way -= cost

    def learn(self, cost: float, now: float, *, maximum: float, available: float, rate: float) -> None:
        """End a call, and store the present points that the platform has told."""
        self._under_way -= cost
        self._maximum = max(maximum, 1.0)
        self._rate = max(rate, 1.0)
        # The answer does not include the calls that are still under way.
        self._points = min(available, maximum) - self._under_way
        self._at = now

    def pause(self, cost: float) -> float:
        """Return the seconds after which a throttled call may be made again."""
        return max(MIN_WAIT_SECONDS, (cost - self._points) / self._rate)

    def _flow(self, now: float) -> None:
        self._points = min(self._maximum, self._points + (now - self._at) * self._rate)
        self._at = now
