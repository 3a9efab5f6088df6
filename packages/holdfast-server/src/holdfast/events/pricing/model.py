"""Prices of seats: modes, bounds, currencies, and the price history."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.ids import EventId
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
