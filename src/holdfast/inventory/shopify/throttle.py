"""The platform's limit on calls: every call of a shop costs points, which come back at a rate.

We count as the platform does, so that a call waits here until it has its points, instead of being refused there. The
platform tells in each answer how many points there are: so processes that do not know of each other share them.
"""

MAXIMUM = 1_000.0
RATE = 50.0
"""What a shop is taken to have until its first answer: less than any plan gives."""

LEAST = 0.05
"""The least seconds to wait for a platform that said that it is called too often."""


class Bucket:
    """The points of one shop. Times are in seconds of any clock that does not go back."""

    def __init__(self, now: float) -> None:
        self._maximum = MAXIMUM
        self._rate = RATE
        self._points = MAXIMUM
        self._at = now
        self._under_way = 0.0

    def take(self, cost: float, now: float) -> float:
        """Take points. Returns the seconds until they are there: the call is to be made then, and not before."""
        self._flow(now)
        self._points -= cost
        self._under_way += cost
        return max(0.0, -self._points / self._rate)

    def give_back(self, cost: float) -> None:
        """A call for which points were taken is not made after all."""
        self._points += cost
        self._under_way -= cost

    def lose(self, cost: float) -> None:
        """A call is over of which the platform did not say what it cost."""
        self._under_way -= cost

    def learn(self, cost: float, now: float, *, maximum: float, available: float, rate: float) -> None:
        """A call is over for which points were taken, and the platform has said how many there are now."""
        self._under_way -= cost
        self._maximum = max(maximum, 1.0)
        self._rate = max(rate, 1.0)
        # The answer does not know of the calls that are still under way.
        self._points = min(available, maximum) - self._under_way
        self._at = now

    def pause(self, cost: float) -> float:
        """The seconds after which a call may be made again that the platform refused for lack of points."""
        return max(LEAST, (cost - self._points) / self._rate)

    def _flow(self, now: float) -> None:
        self._points = min(self._maximum, self._points + (now - self._at) * self._rate)
        self._at = now
