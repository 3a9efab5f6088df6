"""What a seat costs: modes, bounds, currencies, and the history of a price."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.ids import EventId
from holdfast.kit.command import Command, Errors, Minor, Timestamp
from holdfast.kit.said import FieldName, said

PricingMode = Annotated[
    Literal["free", "fixed", "dynamic"],
    Meta(description="A dynamic price moves with demand, between min_price and max_price."),
]
Reason = Literal["init", "registration", "tick", "manual_change", "other"]

Currency = Annotated[
    str,
    Meta(
        pattern=r"^[A-Z]{3}$(?!\n)",
        description="ISO 4217 code the payment processor supports.",
        extra={"noun": said("a currency code of three capital letters such as USD")},
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


def misfits(mode: PricingMode, price: int, min_price: int | None, max_price: int | None) -> Errors:
    """Messages why price and bounds do not fit a pricing mode, by field; empty when they fit."""
    errors: Errors = {}
    if mode == "free" and price != 0:
        errors["price"] = [said("must be 0 for a free event")]
    if mode == "fixed" and price < 1:
        errors["price"] = [said("must be at least 1 for a fixed price")]
    if mode == "dynamic":
        lowest, highest = FieldName("min_price"), FieldName("max_price")
        if min_price is None:
            errors["min_price"] = [said("is required for a dynamic price")]
        elif price < min_price:
            errors["price"] = [said("must be at least %(field)s, %(least)s", field=lowest, least=min_price)]
        if max_price is None:
            errors["max_price"] = [said("is required for a dynamic price")]
        elif price > max_price:
            errors["price"] = [said("must be at most %(field)s, %(most)s", field=highest, most=max_price)]
        if min_price is not None and max_price is not None and max_price <= min_price:
            errors["max_price"] = [said("must be greater than %(field)s, %(least)s", field=lowest, least=min_price)]
    return errors
