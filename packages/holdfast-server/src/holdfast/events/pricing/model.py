"""Prices of seats: modes, bounds, currencies, the price history, and the payment object of an event."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.paths import EventId
from holdfast.kit.contract.command import Command, Errors, Minor, Timestamp
from holdfast.kit.contract.messages import FieldName, message

PricingMode = Annotated[
    Literal["free", "fixed", "dynamic"],
    Meta(description="A dynamic price moves with demand, between min_price and max_price."),
]
Reason = Literal["init", "registration", "tick", "manual_change", "other"]

Currency = Annotated[
    str,
    Meta(
        pattern=r"^[A-Z]{3}$(?!\n)",
        description="ISO 4217.",
        extra={"noun": message("a currency code of three capital letters such as USD")},
    ),
]


class ListPriceHistory(Command):
    event_id: EventId


class PriceChange(Struct):
    """One change of an event's price."""

    id: int
    reason: Reason
    timestamp: Timestamp
    event_id: int
    original_price: Annotated[int | None, Meta(description="Minor units; null for the first entry.")]
    new_price: Minor


def mismatches(mode: PricingMode, price: int, min_price: int | None, max_price: int | None) -> Errors:
    """Error messages by field for a price and bounds that do not fit a pricing mode; empty when they fit."""
    errors: Errors = {}
    if mode == "free" and price != 0:
        errors["price"] = [message("must be 0 for a free event")]
    if mode == "fixed" and price < 1:
        errors["price"] = [message("must be at least 1 for a fixed price")]
    if mode == "dynamic":
        lowest, highest = FieldName("min_price"), FieldName("max_price")
        if min_price is None:
            errors["min_price"] = [message("is required for a dynamic price")]
        elif price < min_price:
            errors["price"] = [message("must be at least %(field)s, %(least)s", field=lowest, least=min_price)]
        if max_price is None:
            errors["max_price"] = [message("is required for a dynamic price")]
        elif price > max_price:
            errors["price"] = [message("must be at most %(field)s, %(most)s", field=highest, most=max_price)]
        if min_price is not None and max_price is not None and max_price < min_price:
            errors["max_price"] = [message("must be at least %(field)s, %(least)s", field=lowest, least=min_price)]
    return errors


def stray_bounds(mode: PricingMode, **bounds: int | None) -> Errors:
    """Error messages by field for bounds of a price that is not dynamic."""
    if mode == "dynamic":
        return {}
    return {
        field: [message("must be left out: only a dynamic price has bounds")]
        for field, bound in bounds.items()
        if bound is not None
    }


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
