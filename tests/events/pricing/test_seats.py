"""A price rises with each seat and falls when one comes back; an accepted person pays the price that was shown."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.events.seats import settlement
from tests.events.pricing.sale import Sale, open_sale
from tests.helpers.events_service import Service


async def test_a_seat_sold_ahead_of_time_raises_the_price(sale: Sale) -> None:
    await sale.register("ann")

    assert await sale.news() == [("registration", 2500, 2850)]
    assert await sale.price() == 2850


async def test_a_batch_is_one_change_however_many_seats_it_sells(sale: Sale) -> None:
    await sale.register("ann", "ben", "cal")

    assert await sale.news() == [("registration", 2500, 3550)]


async def test_a_sold_out_event_has_the_upper_bound_as_its_price(service: Service) -> None:
    sale = await open_sale(service, capacity=1)
    await sale.register("ann")

    assert await sale.news() == [("registration", 2500, 6000)]


async def test_unsettled_and_waiting_registrations_do_not_move_the_price(service: Service) -> None:
    sale = await open_sale(service, waitinglist_capacity=5)
    await sale.register("ann", settle=False)
    assert await sale.news() == []

    await sale.register(*"bcdefghij")
    full = await sale.news()
    await sale.register("waiting")

    assert full == [("registration", 2500, 6000)] == await sale.news()


@pytest.mark.parametrize("how", ["delete", "waitlisted"])
async def test_a_seat_that_comes_back_lowers_the_price(sale: Sale, how: str) -> None:
    [poll] = await sale.register("ann")

    if how == "delete":
        await sale.ada.delete(poll)
    else:
        await sale.ada.patch(poll, {"registration": {"status": how}})

    assert await sale.news() == [("registration", 2500, 2850), ("registration", 2850, 2500)]


async def test_a_seat_given_by_hand_raises_the_price(sale: Sale) -> None:
    [poll] = await sale.register("ann")
    await sale.ada.patch(poll, {"registration": {"status": "waitlisted"}})
    await sale.ada.patch(poll, {"registration": {"status": "registered"}})

    assert (await sale.news())[2:] == [("registration", 2500, 2850)]


async def test_a_seat_that_goes_straight_to_a_waiting_person_leaves_the_price(service: Service) -> None:
    sale = await open_sale(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")
    before = await sale.news()

    await sale.ada.delete(polls[0])

    assert await sale.news() == before


async def test_a_change_that_leaves_the_seats_leaves_the_price(service: Service) -> None:
    sale = await open_sale(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")
    before = await sale.news()
    await sale.days(50)

    await sale.ada.patch(polls[0], {"registration": {"amount_paid": 1}})
    await sale.ada.delete(polls[1])
    await sale.patch(title="Portraits", waitinglist_capacity=9)

    assert await sale.news() == before


async def test_one_batch_prices_each_of_its_events_by_its_own_seats(service: Service) -> None:
    ada = await service.organizer()
    dear, cheap = await open_sale(service, ada), await open_sale(service, ada, capacity=100)
    fixed = await ada.create_event(pricing_mode="fixed", price=700)
    await ada.register(fixed["id"], email="ann@example.com")
    await dear.register("ann", settle=False)
    await cheap.register("ann", "ben")

    assert (await dear.news(), await cheap.news()) == (
        [("registration", 2500, 2850)],
        [("registration", 2500, 2550)],
    )
    assert await Sale(service, ada, fixed).news() == []


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(people=st.integers(1, 14), batch=st.integers(1, 14))
async def test_the_price_does_not_depend_on_the_batches_of_settlement(
    service: Service, people: int, batch: int
) -> None:
    at_once = await open_sale(service, capacity=12)
    in_parts = await open_sale(service, at_once.ada, capacity=12)
    names = [f"n{number}" for number in range(people)]
    await at_once.register(*names)
    await in_parts.register(*names, settle=False)

    await settlement.settle(service.database, batch_size=batch)

    assert await in_parts.price() == await at_once.price()


# Who pays what


async def test_everyone_accepted_before_the_price_moved_pays_what_they_were_shown(sale: Sale) -> None:
    first = await sale.register("ann", "ben")
    second = await sale.register("cal")

    paid = [(await sale.ada.get(poll)).json()["data"]["amount_paid"] for poll in [*first, *second]]

    assert paid == [2500, 2500, 3200]


async def test_a_promoted_person_pays_the_price_shown_at_registration(service: Service) -> None:
    sale = await open_sale(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")

    await sale.ada.delete(polls[0])

    promoted = (await sale.ada.get(polls[1])).json()["data"]
    assert (promoted["status"], promoted["amount_paid"]) == ("registered", 2500)
