"""A month after an event its price history is thinned: fewer changes, and still a chain without gaps."""

from itertools import pairwise
from typing import Any

from holdfast.events.pricing.operations import thin_histories
from holdfast.kit.background.tasks import in_batches
from holdfast.kit.operations.steps import Steps
from tests.events.pricing.sale import Change, Sale, open_sale
from tests.helpers.events_service import Service

MONTH = 40
"""Days after the event, of a sale of 100 days, that are more than a month."""


async def thin(service: Service) -> int:
    return await in_batches(thin_histories)(Steps(service.database))


async def add_changes(sale: Sale, *changes: tuple[str, int, int, str]) -> None:
    """Put changes into the history: the reason, the price before and after, and the time of day."""
    for reason, before, after, time in changes:
        await sale.service.run_sql(
            """
            insert into price_changes (event_id, reason, original_price, new_price, "timestamp")
            values (%(id)s, %(reason)s::price_change_reason, %(before)s, %(after)s,
                    date_trunc('day', now()) + %(time)s::time)
            """,
            id=sale.id,
            reason=reason,
            before=before,
            after=after,
            time=time,
        )
    last = changes[-1][2]
    await sale.service.run_sql("update events set current_price = %(last)s where id = %(id)s", id=sale.id, last=last)


async def let_month_pass(sale: Sale) -> None:
    await sale.days(100 + MONTH)


def is_a_chain(history: list[Change]) -> bool:
    return all(before[2] == after[1] != after[2] for before, after in pairwise(history))


async def test_changes_within_an_hour_for_the_same_reason_become_one(service: Service) -> None:
    sale = await open_sale(service)
    await add_changes(
        sale,
        ("tick", 2500, 2450, "08:00"),
        ("tick", 2450, 2400, "08:20"),
        ("tick", 2400, 2350, "08:59"),
        ("tick", 2350, 2300, "09:00"),
        ("registration", 2300, 2400, "09:10"),
        ("registration", 2400, 2600, "09:20"),
    )
    await let_month_pass(sale)

    assert await thin(service) == 1

    history = await sale.history()
    assert history == [
        ("init", None, 2500),
        ("tick", 2500, 2350),
        ("tick", 2350, 2300),
        ("registration", 2300, 2600),
    ]
    assert is_a_chain(history)


async def test_manual_changes_of_a_price_are_kept_and_not_joined(service: Service) -> None:
    sale = await open_sale(service)
    changes: list[tuple[str, int, int, str]] = [
        ("tick", 2500, 2450, "08:00"),
        ("manual_change", 2450, 3000, "08:10"),
        ("manual_change", 3000, 2000, "08:11"),
        ("other", 2000, 2100, "08:12"),
        ("other", 2100, 2200, "08:13"),
        ("tick", 2200, 2150, "08:20"),
    ]
    await add_changes(sale, *changes)
    await let_month_pass(sale)
    before = await sale.history()

    await thin(service)

    assert (
        await sale.history()
        == before
        == [("init", None, 2500), *((change[0], change[1], change[2]) for change in changes)]
    )


async def test_a_price_that_rose_and_fell_within_an_hour_is_no_change(service: Service) -> None:
    sale = await open_sale(service)
    await add_changes(
        sale,
        ("registration", 2500, 2600, "08:00"),
        ("registration", 2600, 2500, "08:10"),
        ("tick", 2500, 2450, "10:00"),
    )
    await let_month_pass(sale)

    await thin(service)

    assert await sale.history() == [("init", None, 2500), ("tick", 2500, 2450)]


async def test_the_history_of_an_event_that_is_not_long_over_is_whole(service: Service) -> None:
    sale, soon = await open_sale(service), await open_sale(service)
    for event in (sale, soon):
        await add_changes(event, ("tick", 2500, 2450, "08:00"), ("tick", 2450, 2400, "08:20"))
    await soon.days(100 + 20)
    before = [await sale.history(), await soon.history()]

    assert await thin(service) == 0
    assert [await sale.history(), await soon.history()] == before


async def test_a_history_is_thinned_once(service: Service) -> None:
    sale = await open_sale(service)
    await add_changes(sale, ("tick", 2500, 2450, "08:00"), ("tick", 2450, 2400, "08:20"))
    await let_month_pass(sale)

    assert [await thin(service) for _ in range(2)] == [1, 0]


async def test_a_price_goes_on_from_a_thinned_history(service: Service) -> None:
    """When the event is moved to the future after all."""
    sale = await open_sale(service)
    await add_changes(sale, ("tick", 2500, 2450, "08:00"), ("tick", 2450, 2500, "08:20"))
    await let_month_pass(sale)
    await thin(service)
    [(soon,)] = await service.run_sql("select now() + interval '10 days'")
    fields: dict[str, Any] = {"datetime": soon.isoformat()}

    await sale.patch(**fields)

    history = await sale.history()
    assert history[-1][2] == await sale.price()
    assert is_a_chain(history)
