"""Converts a dispute of Stripe to the dispute of this service."""

from typing import Any, Literal

from holdfast.events.processor.currencies import from_processor
from holdfast.events.processor.processor import Dispute


def dispute_of(dispute: Any) -> Dispute:
    """The fields of a dispute that the service needs. An unknown status counts as not decided."""
    status: str = dispute.status
    state: Literal["inquiry", "open", "won", "lost", "closed"] = "open"
    if status == "won":
        state = "won"
    elif status == "lost":
        state = "lost"
    elif status in ("warning_closed", "prevented"):
        state = "closed"
    elif status.startswith("warning_"):
        state = "inquiry"
    return Dispute(
        dispute.id,
        dispute.payment_intent or "",
        state,
        from_processor(dispute.amount, dispute.currency),
        bool(dispute.is_charge_refundable),
    )
