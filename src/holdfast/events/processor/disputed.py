"""A dispute as Stripe has it, read for the service."""

from typing import Any, Literal

from holdfast.events.processor.currencies import from_processor
from holdfast.events.processor.processor import Dispute


def disputed(dispute: Any) -> Dispute:
    """What the service needs of a dispute. A status that is not known here is one that is not decided."""
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
