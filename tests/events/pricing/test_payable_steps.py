"""A price moves only to amounts that the payment processor charges, if there are any between its bounds."""

import pytest

from tests.events.pricing.sale import Sale, open_sale
from tests.helpers.events_service import Service


async def test_a_price_falls_to_the_least_amount_of_a_charge_and_no_further(service: Service) -> None:
    sale = await open_sale(service, currency="EUR", price=60, min_price=10, max_price=500)

    await sale.days(99.9)
    await sale.tick()

    assert await sale.price() == 50
    assert await sale.history() == [("init", None, 60), ("tick", 60, 50)]


async def test_a_sale_whose_first_price_is_too_low_begins_at_the_least_amount_of_a_charge(service: Service) -> None:
    sale = await open_sale(service, currency="GBP", price=10, min_price=5, max_price=100)
    event = (await sale.ada.get(sale.address)).json()["data"]

    assert (event["price"], event["current_price"]) == (10, 30)
    assert await sale.history() == [("init", None, 30)]
    await sale.days(99)
    assert await sale.tick() == 0


@pytest.mark.parametrize("names", [["ann"], ["ann", "bob", "cy"]])
async def test_a_price_of_three_digits_always_ends_in_0(service: Service, names: list[str]) -> None:
    sale = await open_sale(service, currency="KWD", price=2505, min_price=1003, max_price=6007)

    await sale.register(*names)
    await sale.days(20)
    await sale.tick()
    await sale.patch(price=3333)

    prices = [new for _, _, new in await sale.history()]
    assert prices[0] == 2510
    assert len(set(prices)) == 4
    assert [price % 10 for price in prices] == [0, 0, 0, 0]
    assert await sale.price() == await sale.by_policy()


async def test_a_sale_without_a_chargeable_price_goes_on_with_the_given_bounds(service: Service) -> None:
    sale: Sale = await open_sale(service, currency="EUR", price=20, min_price=10, max_price=40)

    await sale.register("ann")

    assert await sale.news() == [("registration", 20, await sale.by_policy())]
    assert 20 < await sale.price() < 40
