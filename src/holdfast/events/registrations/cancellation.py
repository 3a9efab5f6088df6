"""Until when people can cancel their own registration."""

from datetime import datetime, timedelta


def cancels_until(begins: datetime, cancellation_hours: int, promoted_at: datetime | None) -> datetime:
    """The moment from which a person can no longer cancel: so many hours before the event begins.

    Who moved up from the waiting list later than that can hand the place back until the event begins.
    """
    until = begins - timedelta(hours=cancellation_hours)
    return begins if promoted_at is not None and promoted_at > until else until
