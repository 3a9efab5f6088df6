"""The deadlines for people to cancel their own registration, and to get their money back for it."""

from datetime import datetime, timedelta


def cancellation_deadline(
    status: str | None, begins: datetime, cancellation_hours: int, promoted_at: datetime | None
) -> datetime:
    """The time from which a person can no longer cancel a seat: `cancellation_hours` before the event begins.

    A person who was promoted from the waiting list after that time can cancel until the event begins. A person without
    a seat can cancel until then too.
    """
    if status != "registered":
        return begins
    until = begins - timedelta(hours=cancellation_hours)
    return begins if promoted_at is not None and promoted_at > until else until


def refund_deadline(begins: datetime, refund_days: int, cancellation: datetime) -> datetime:
    """The time until which a cancellation is refunded in full: `refund_days` before the event begins.

    cancellation    the deadline for the cancellation itself: if it is earlier, it counts
    """
    return min(begins - timedelta(days=refund_days), cancellation)
