"""The ratio policy: the price of a seat is a function of the remaining seats and time only."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.events.pricing.model import FIRST_PRICE, PRICE, chargeable, current_price
from holdfast.events.processor.currencies import is_payable, rules_of
from tests.helpers.events_service import Service

CREATED = datetime(2026, 3, 1, tzinfo=UTC)
MOST_MONEY = 999_999_999_999
MOST_SEATS = 2**31 - 1
KINDS = ("USD", "GBP", "HUF", "JPY", "ISK", "KWD", "XXX")
"""Currencies of every kind: with a least amount and without, with 0, 2 and 3 digits, and one that is not charged."""


class PolicySale(NamedTuple):
    """The state of a sale, in the words of the policy."""

    price: int
    min_price: int
    max_price: int
    capacity: int
    registered: int
    created: datetime
    now: datetime
    datetime: datetime
    currency: str = "USD"

    @property
    def costs(self) -> int:
        return current_price(**self._asdict())

    def payable(self, price: int) -> int:
        """The price that the processor charges, instead of one that it does not."""
        return chargeable(price, self.min_price, self.max_price, self.currency)


def hundred_days(now: int, registered: int, **terms: int) -> PolicySale:
    """100 seats over 100 days from 25.00, between 10.00 and 60.00, at the end of a day."""
    at = {"price": 2500, "min_price": 1000, "max_price": 6000, "capacity": 100, **terms}
    starts = CREATED + timedelta(days=100)
    moment = CREATED + timedelta(days=now)
    return PolicySale(**at, registered=registered, created=CREATED, now=moment, datetime=starts, currency="USD")


EARLIEST, LATEST = datetime(1970, 1, 1), datetime(8999, 12, 31)
MOMENTS = st.datetimes(EARLIEST, LATEST, timezones=st.just(UTC))


@st.composite
def sales(draw: st.DrawFn) -> PolicySale:
    """Any sale there can be, the absurd ones included: over before it began, read by a clock that was set back."""
    money = st.one_of(st.integers(0, 300), st.integers(0, MOST_MONEY))
    min_price, price, max_price = sorted(draw(st.tuples(money, money, money)))
    capacity = draw(st.one_of(st.integers(1, 100), st.integers(1, MOST_SEATS)))
    created, starts = draw(MOMENTS), draw(MOMENTS)
    if draw(st.booleans()):
        created, starts = sorted((created, starts))
    between = (moment.replace(tzinfo=None) for moment in sorted((created, starts)))
    now = draw(st.one_of(MOMENTS, st.datetimes(*between, timezones=st.just(UTC))))
    registered = draw(st.integers(0, capacity))
    return PolicySale(
        price, min_price, max_price, capacity, registered, created, now, starts, draw(st.sampled_from(KINDS))
    )


@pytest.mark.parametrize(
    ("day", "registered", "price"),
    [
        (0, 0, 2500),
        (0, 1, 2550),
        (50, 0, 1750),
        (50, 50, 2500),
        (50, 99, 5950),
        (99, 100, 6000),
        (100, 0, 1000),
        (100, 99, 1000),
        (100, 100, 6000),
    ],
)
def test_prices_of_a_sale_of_100_seats_in_100_days_are_those_of_the_table(
    day: int, registered: int, price: int
) -> None:
    assert hundred_days(day, registered).costs == price


def test_a_lower_bound_equal_to_the_price_gives_no_discounts() -> None:
    assert {hundred_days(day, 0, min_price=2500).costs for day in range(101)} == {2500}


@given(sale=sales())
def test_the_price_never_leaves_its_bounds(sale: PolicySale) -> None:
    assert sale.min_price <= sale.costs <= sale.max_price


@given(sale=sales())
def test_the_price_is_always_payable_if_any_price_within_the_bounds_is(sale: PolicySale) -> None:
    rules = rules_of(sale.currency)
    lowest = max(sale.min_price, rules.min_amount)
    fits = any(
        is_payable(price, sale.currency) for price in range(lowest, min(lowest + rules.unit, sale.max_price + 1))
    )

    assert is_payable(sale.costs, sale.currency) or not fits


@given(sale=sales(), seats=st.integers(1, MOST_SEATS))
def test_the_price_never_falls_when_seats_go(sale: PolicySale, seats: int) -> None:
    after = sale._replace(registered=min(sale.capacity, sale.registered + seats))

    assert after.costs >= sale.costs


@given(sale=sales(), later=MOMENTS)
def test_the_price_never_rises_by_waiting(sale: PolicySale, later: datetime) -> None:
    early, late = sorted((sale.now, later))

    assert sale._replace(now=late).costs <= sale._replace(now=early).costs


@given(sale=sales())
def test_a_sale_begins_at_its_price_whatever_the_steps(sale: PolicySale) -> None:
    assert sale._replace(registered=0, now=sale.created).costs == sale.payable(sale.price)


@given(sale=sales())
def test_the_last_seat_costs_the_upper_bound(sale: PolicySale) -> None:
    assert sale._replace(registered=sale.capacity).costs == sale.payable(sale.max_price)


@given(sale=sales())
def test_an_event_without_registrations_costs_the_lower_bound_in_the_end(sale: PolicySale) -> None:
    created, starts = sorted((sale.created, sale.datetime))
    over = sale._replace(created=created, datetime=starts + timedelta(seconds=1), now=datetime(9000, 1, 1, tzinfo=UTC))

    assert over._replace(registered=0).costs == sale.payable(sale.min_price)


@given(sale=sales())
def test_a_price_lies_on_a_step_counted_from_the_first_one_or_at_a_bound(sale: PolicySale) -> None:
    step = max(1, (sale.max_price - sale.min_price) // 100)
    steps = range(sale.price - 200 * step, sale.price + 200 * step, step)

    assert sale.costs in {sale.payable(price) for price in (sale.min_price, sale.max_price, *steps)}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn_sales=st.lists(sales(), min_size=1, max_size=40))
async def test_the_database_computes_prices_as_the_definition_does(
    service: Service, drawn_sales: list[PolicySale]
) -> None:
    rows = [{"place": place, **sale._asdict()} for place, sale in enumerate(drawn_sales)]
    priced = await service.run_sql(
        f"""
        select {PRICE}, {FIRST_PRICE}
          from json_to_recordset(%(sales)s::json)
               as sales (place int, price bigint, min_price bigint, max_price bigint, capacity int, registered int,
                         created timestamptz, now timestamptz, datetime timestamptz, currency text)
         cross join lateral (
            select sales.price, min_price, max_price, capacity, registered as registered_count,
                   created as inserted_at, datetime, currency, 'dynamic' as pricing_mode) as events
         order by place
        """,
        sales=msgspec.json.encode(rows).decode(),
    )

    assert priced == [(sale.costs, sale.payable(sale.price)) for sale in drawn_sales]
