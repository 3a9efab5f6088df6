"""Until when people can cancel their own registration."""

from datetime import datetime, timedelta


def cancels_until(
    status: str | None, begins: datetime, cancellation_hours: int, promoted_at: datetime | None
) -> datetime:
    """The moment from which a person can no longer cancel a seat: so many hours before the event begins.

    Who moved up from the waiting list later than that can hand the place back until the event begins. Who has no seat
    can cancel until then too.
    """
    if status != "registered":
        return begins
    until = begins - timedelta(hours=cancellation_hours)
    return begins if promoted_at is not None and promoted_at > until else until
