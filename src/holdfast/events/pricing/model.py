"""What a seat costs: modes, bounds, currencies, and the history of a price."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.ids import EventId
from holdfast.kit.command import Command, Errors, Minor, Timestamp

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
        extra={"noun": "a currency code of three capital letters such as USD"},
    ),
]

CURRENCIES = frozenset(
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CLP CNY COP CRC
    CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD JOD JPY
    KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO
    NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SEK SGD SHP SLE SOS SRD STD SZL THB TJS
    TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW
    """.split()
)
"""Presentment currencies of the payment processor (docs.stripe.com/currencies)."""


_DIGITS = {
    **dict.fromkeys("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD JOD KWD OMR TND".split(), 3),
}


def digits(currency: str) -> int:
    """How many digits the minor unit of a currency has, as the payment processor counts: 2 for most."""
    return _DIGITS.get(currency, 2)


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
        errors["price"] = ["must be 0 for a free event"]
    if mode == "fixed" and price < 1:
        errors["price"] = ["must be at least 1 for a fixed price"]
    if mode == "dynamic":
        if min_price is None:
            errors["min_price"] = ["is required for a dynamic price"]
        elif price < min_price:
            errors["price"] = [f"must be at least min_price, {min_price}"]
        if max_price is None:
            errors["max_price"] = ["is required for a dynamic price"]
        elif price > max_price:
            errors["price"] = [f"must be at most max_price, {max_price}"]
        if min_price is not None and max_price is not None and max_price <= min_price:
            errors["max_price"] = [f"must be greater than min_price, {min_price}"]
    return errors
