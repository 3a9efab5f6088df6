"""A clock that a test moves."""


class ManualClock:
    """A clock that stands still until a test sets `now`."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
