"""The payment object of an event."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.pricing.model import PricingMode


class Payment(Struct):
    """Whether and how students pay. Agents never pay."""

    status: Literal["not_required", "required", "unavailable"]
    status_reason: Literal["free_event", "organizer_processor_ready", "organizer_processor_not_configured"]
    platform_fee_percent: Annotated[int, Meta(description="Percentage charged on student payments.")]
    agent_payment_required: Literal[False]
    event_is_paid: bool
    platform_fee_collection: Literal["application_fee_amount", "none"]
    platform_fee_source: Literal["student_payment"] | None
    student_payment_processor: Literal["connect_destination_charge"] | None
    student_payment_required: bool


def payment(mode: PricingMode, payouts_ready: bool, fee_percent: int, *, is_payable: bool = True) -> Payment:
    """The payment object: a pure function of the price and of the organizer's payout account.

    is_payable    whether the processor charges the price: `unavailable` with `organizer_processor_ready` means that
                  everything is set up, but the price is one that cannot be paid
    """
    if mode == "free":
        return Payment("not_required", "free_event", 0, False, False, "none", None, None, False)
    return Payment(
        status="required" if payouts_ready and is_payable else "unavailable",
        status_reason="organizer_processor_ready" if payouts_ready else "organizer_processor_not_configured",
        platform_fee_percent=fee_percent,
        agent_payment_required=False,
        event_is_paid=True,
        platform_fee_collection="application_fee_amount",
        platform_fee_source="student_payment",
        student_payment_processor="connect_destination_charge",
        student_payment_required=True,
    )
