"""A price changes with the event when its organizer edits it, and the history says why."""

from typing import Any

import pytest

from tests.events.pricing.sale import Change, Sale, open_sale
from tests.helpers.events_service import Service


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"price": 3000}, ("manual_change", 2500, 3000)),
        ({"price": 2500, "max_price": 2500}, None),
        ({"min_price": 2600, "price": 2600}, ("manual_change", 2500, 2600)),
        ({"price": 3000, "capacity": 5}, ("manual_change", 2500, 3000)),
        ({"capacity": 5}, None),
    ],
)
async def test_an_edit_that_moves_the_price_is_a_change_of_the_history(
    sale: Sale, fields: dict[str, Any], change: Change | None
) -> None:
    await sale.patch(**fields)

    assert await sale.news() == [change] * bool(change)
    assert await sale.price() == (change[2] if change else 2500)


async def test_a_new_bound_moves_a_price_that_was_on_its_way_there(sale: Sale) -> None:
    await sale.days(50)
    await sale.tick()

    await sale.patch(min_price=2000)

    assert await sale.news() == [("tick", 2500, 1750), ("manual_change", 1750, 2260)]


async def test_a_new_price_takes_the_discount_of_the_elapsed_time(sale: Sale) -> None:
    await sale.days(50)
    await sale.tick()

    await sale.patch(price=3000)

    assert (await sale.news())[1:] == [("manual_change", 1750, 2000)]


async def test_more_seats_lower_the_price_for_another_reason(sale: Sale) -> None:
    await sale.register("ann", "ben")

    await sale.patch(capacity=20)

    assert (await sale.news())[1:] == [("other", 3200, 2850)]


async def test_seats_that_go_to_the_waiting_list_are_part_of_the_same_change(service: Service) -> None:
    sale = await open_sale(service, capacity=1, waitinglist_capacity=3)
    await sale.register("ann", "ben")

    await sale.patch(capacity=4)

    assert (await sale.news())[1:] == [("other", 6000, 4250)]


async def test_a_change_of_the_date_changes_the_price_for_the_reason_other(sale: Sale) -> None:
    await sale.days(50)
    await sale.tick()
    [(later,)] = await sale.service.run_sql("select datetime + interval '50 days' from events")

    await sale.patch(datetime=later.isoformat())

    assert (await sale.news())[1:] == [("other", 1750, 2000)]


async def test_an_edit_of_a_past_event_keeps_the_price_within_its_bounds(sale: Sale) -> None:
    await sale.service.run_sql("update events set datetime = now()")

    await sale.patch(price=900, min_price=800, max_price=1900)

    assert await sale.news() == [("manual_change", 2500, 1900)]
