"""Prices of seats: modes, bounds, currencies, the price history, the payment object of an event, and the ratio policy.

It compares two shares: the share of the seats that is left, and the share of the time that is left, from the event's
creation to its datetime. While they are equal, the sale is on schedule, and a seat costs `price`. When the share of the
seats is smaller, the price rises by the fraction (time - seats) / time of the distance to `max_price`. When the share
of the time is smaller, it falls by the fraction (seats - time) / seats of the distance to `min_price`. After the last
seat is sold it is `max_price`; if no seat is sold, it is `min_price` at the end.

The price moves in steps of a hundredth of the range between the bounds, counted from `price`, so that it does not
change all the time. It depends only on the present seats and the present time, not on earlier prices.

The price is always an amount that the payment processor charges, if there is one between the bounds: the one nearest to
the computed price. So it is never below the smallest amount of a charge.
"""

import datetime as dt
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.paths import EventId
from holdfast.events.processor.currencies import by_currency, rules_of
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

MICROSECOND = dt.timedelta(microseconds=1)
STEPS = 100
"""The number of steps between the bounds, if the range is wide enough."""


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


class PricePoint(Struct, frozen=True):
    """A price and the moment from which it was valid."""

    timestamp: dt.datetime
    price: int


def errors_of_price(mode: PricingMode, price: int, min_price: int | None, max_price: int | None) -> Errors:
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


def errors_of_bounds(mode: PricingMode, **bounds: int | None) -> Errors:
    """Error messages by field for bounds of a price that is not dynamic."""
    if mode == "dynamic":
        return {}
    return {
        field: [message("must be left out: only a dynamic price has bounds")]
        for field, bound in bounds.items()
        if bound is not None
    }


class Payment(Struct, frozen=True):
    """Whether and how people pay. Agents never pay."""

    # The contract has the word `student` for a person who registers.

    status: Literal["not_required", "required", "unavailable"]
    status_reason: Literal["free_event", "organizer_processor_ready", "organizer_processor_not_configured"]
    platform_fee_percent: Annotated[int, Meta(description="Percentage charged on payments of people.")]
    agent_payment_required: Literal[False]
    event_is_paid: bool
    platform_fee_collection: Literal["application_fee_amount", "none"]
    platform_fee_source: Literal["student_payment"] | None
    student_payment_processor: Literal["connect_destination_charge"] | None
    student_payment_required: bool


_NO_PAYMENT = Payment("not_required", "free_event", 0, False, False, "none", None, None, False)


def payment(mode: PricingMode, payouts_ready: bool, fee_percent: int, *, is_payable: bool = True) -> Payment:
    """The payment object: a pure function of the price and of the organizer's payout account.

    is_payable    whether the processor charges the price: `unavailable` with `organizer_processor_ready` means that
                  everything is set up, but the price is one that cannot be paid
    """
    if mode == "free":
        return _NO_PAYMENT
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


def current_price(
    *,
    price: int,
    min_price: int,
    max_price: int,
    capacity: int,
    registered: int,
    created: dt.datetime,
    now: dt.datetime,
    datetime: dt.datetime,
    currency: str,
) -> int:
    """The price of a seat, in minor units.

    Only occupied seats count as `registered`, not the waiting list. `created` is the time of the event's creation.
    """
    ratio_price = _ratio_price(price, min_price, max_price, capacity, registered, created, now, datetime)
    return chargeable(ratio_price, min_price, max_price, currency)


def first_price(
    mode: PricingMode, price: int, min_price: int | None, max_price: int | None, currency: str
) -> int | None:
    """The price of the first seat of an event; None if it is free."""
    if mode == "dynamic" and min_price is not None and max_price is not None:
        return chargeable(price, min_price, max_price, currency)
    return None if mode == "free" else price


def chargeable(price: int, min_price: int, max_price: int, currency: str) -> int:
    """The amount nearest to a price, within the bounds, that the processor charges. If there is none, the price."""
    rules = rules_of(currency)
    lowest = -(-max(min_price, rules.min_amount) // rules.unit) * rules.unit
    highest = min(max_price, rules.max_amount) // rules.unit * rules.unit
    if lowest > highest:
        return price
    return min(max((price + rules.unit // 2) // rules.unit * rules.unit, lowest), highest)


def _ratio_price(
    price: int,
    min_price: int,
    max_price: int,
    capacity: int,
    registered: int,
    created: dt.datetime,
    now: dt.datetime,
    datetime: dt.datetime,
) -> int:
    """The price of a seat by the ratio policy alone."""
    if registered >= capacity:
        return max_price
    # Both are multiplied by capacity x (datetime - created), so that they can be compared without dividing.
    seats_left = (capacity - registered) * max(0, (datetime - created) // MICROSECOND)
    time_left = capacity * max(0, (datetime - max(now, created)) // MICROSECOND)
    if seats_left == time_left:
        return price
    bound = max_price if time_left > seats_left else min_price
    distance = abs(bound - price)
    way = distance * abs(time_left - seats_left) // max(time_left, seats_left)
    if way == distance:
        return bound
    step = max(1, (max_price - min_price) // STEPS)
    price_change = min((way + step // 2) // step * step, distance)
    return price + price_change if bound > price else price - price_change


_RATIO_PRICE: LiteralString = """(
    select case when events.registered_count >= events.capacity then events.max_price
                when way = distance then bound
                else events.price + sign(bound - events.price) * least(div(way + step / 2, step) * step, distance)
           end::bigint
      from (select (events.capacity - events.registered_count)
                   * greatest(0, extract(epoch from events.datetime - events.inserted_at)) as seats_left,
                   events.capacity
                   * greatest(0, extract(epoch from events.datetime - greatest(now, events.inserted_at))) as time_left,
                   greatest(1, (events.max_price - events.min_price) / 100) as step) as shares
     cross join lateral (
        select case when time_left > seats_left then events.max_price
                    when time_left < seats_left then events.min_price
                    else events.price end as bound) as direction
     cross join lateral (
        select abs(bound - events.price) as distance,
               case when bound = events.price then 0
                    else div(abs(bound - events.price) * abs(time_left - seats_left), greatest(time_left, seats_left))
               end as way) as journey)
"""


def _chargeable_sql(price: LiteralString) -> LiteralString:
    """`chargeable` in SQL. `offset 0` lets each part be computed once."""
    return f"""(
    select case when lowest > highest then raw_price
                else least(greatest((raw_price + unit / 2) / unit * unit, lowest), highest) end
      from (select {price} as raw_price, unit,
                   (greatest(events.min_price, min_amount) + unit - 1) / unit * unit as lowest,
                   least(events.max_price, max_amount) / unit * unit as highest
              from (select {by_currency("unit")} as unit, {by_currency("min_amount")} as min_amount,
                           {by_currency("max_amount")} as max_amount offset 0) as rules offset 0) as bounds)
"""


FIRST_PRICE: LiteralString = f"""
    case pricing_mode when 'free' then null when 'fixed' then events.price else {_chargeable_sql("events.price")} end
"""
"""`first_price` in SQL. It reads a row of `events`."""

PRICE: LiteralString = _chargeable_sql(_RATIO_PRICE)
"""`current_price` in SQL, to price many events at once. It reads a row of `events` and a column `now`.

The function above is the definition; `tests/events/pricing/test_policy.py` checks that both give the same prices.
"""
