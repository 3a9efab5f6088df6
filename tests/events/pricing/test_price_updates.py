"""A price follows the time that passes: once a minute, one change for all processes, until the event is over."""

import asyncio

import pytest

from holdfast.events.pricing.operations import update_prices
from holdfast.events.pricing.part import PART
from tests.events.pricing.sale import Sale, open_sale
from tests.helpers.events_service import Service


async def test_time_without_sales_lowers_the_price_at_the_next_tick(sale: Sale) -> None:
    await sale.days(50)
    assert await sale.news() == []

    assert await sale.tick() == 1

    assert await sale.news() == [("tick", 2500, 1750)]
    assert await sale.price() == 1750


def test_the_service_ticks_once_a_minute() -> None:
    assert ("* * * * *", "tick") in [(task.schedule.cron, task.name) for task in PART.timed_tasks]


async def test_a_tick_that_reaches_no_new_level_is_no_change(sale: Sale) -> None:
    assert await sale.tick() == 0
    await sale.days(0.1)

    assert await sale.tick() == 0
    assert await sale.news() == []


async def test_ticks_of_many_processes_at_once_are_one_change(sale: Sale) -> None:
    await sale.days(50)

    moved = await asyncio.gather(*(sale.tick() for _ in range(8)))

    assert sum(moved) == 1
    assert await sale.news() == [("tick", 2500, 1750)]


async def test_a_tick_at_a_given_moment_moves_every_price_that_is_due_by_then(service: Service) -> None:
    ada = await service.organizer()
    sales = [await open_sale(service, ada) for _ in range(3)]
    others = [await ada.create_event(), await ada.create_event(pricing_mode="fixed", price=700)]
    [(later,)] = await service.run_sql("select now() + interval '70 days'")

    assert await service.database.transact(lambda tx: update_prices(tx, later)) == 3

    assert [await sale.news() for sale in sales] == [[("tick", 2500, 1450)]] * 3
    assert [await Sale(service, ada, event).news() for event in others] == [[], []]


async def test_after_a_long_rest_the_prices_that_one_tick_cannot_move_follow_with_the_next(service: Service) -> None:
    ada = await service.organizer()
    sales = [await open_sale(service, ada) for _ in range(3)]
    for sale in sales:
        await sale.days(50)

    moved = [await service.database.transact(lambda tx: update_prices(tx, limit=2)) for _ in range(3)]

    assert moved == [2, 1, 0]
    assert [await sale.price() for sale in sales] == [1750] * 3


async def test_a_tick_skips_an_event_that_settlement_is_changing(sale: Sale) -> None:
    await sale.days(50)
    async with sale.service.database.transaction() as tx:
        await tx.value("select id from events where id = %(id)s for no key update", {"id": sale.id})

        assert await sale.tick() == 0

    assert await sale.tick() == 1


@pytest.mark.parametrize("over", ["cancelled_at = now()", "datetime = now()"])
async def test_the_price_of_an_event_that_is_over_stands_still(sale: Sale, over: str) -> None:
    [poll] = await sale.register("ann")
    await sale.days(50)
    await sale.service.run_sql("update events set " + over)
    before = await sale.history()

    assert await sale.tick() == 0
    await sale.ada.delete(poll)

    assert await sale.history() == before
