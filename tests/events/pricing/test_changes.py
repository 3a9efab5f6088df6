"""A price changes when a seat goes or comes back, when time passes, and by hand: one entry in the history each."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.events import jobs
from holdfast.events.pricing.changes import tick
from holdfast.events.pricing.policy import current_price
from holdfast.events.registrations import settlement
from holdfast.kit.jobs import Periodic
from tests.events.clock import pass_by
from tests.support import Client, Service

DYNAMIC = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}
DAY = timedelta(days=1)

Change = tuple[str, int | None, int]


class Sale:
    """An event with a dynamic price, of 10 seats and 100 days unless the fields say otherwise."""

    def __init__(self, service: Service, ada: Client, event: dict[str, Any]) -> None:
        self.service = service
        self.ada = ada
        self.id: int = event["id"]
        self.address = f"/api/events/{self.id}"

    async def register(self, *names: str, settle: bool = True) -> list[str]:
        polls = [await self.ada.register(self.id, email=f"{name}@example.com") for name in names]
        if settle:
            await self.service.settle()
        return polls

    async def days(self, days: float) -> None:
        """Let time pass, without a tick."""
        await pass_by(self.service, self.id, days * DAY)

    async def tick(self) -> int:
        return await self.service.database.transact(tick)

    async def patch(self, **fields: Any) -> None:
        answer = await self.ada.patch(self.address, {"event": fields})
        assert answer.status_code == 200, answer.text

    async def price(self) -> int:
        return (await self.ada.get(self.address)).json()["data"]["current_price"]

    async def history(self) -> list[Change]:
        """Every change, the oldest first."""
        changes = (await self.ada.get(f"{self.address}/price_history")).json()["data"]
        return [(each["reason"], each["original_price"], each["new_price"]) for each in reversed(changes)]

    async def news(self) -> list[Change]:
        """Every change since the beginning."""
        return (await self.history())[1:]

    async def by_policy(self) -> int:
        """What the policy says the price is now."""
        [row] = await self.service.run_sql(
            "select price, min_price, max_price, capacity, registered_count, inserted_at, clock_timestamp(), datetime"
            "  from events where id = %(id)s",
            id=self.id,
        )
        names = ("price", "min_price", "max_price", "capacity", "registered", "created", "now", "datetime")
        return current_price(**dict(zip(names, row, strict=True)))


async def opened(service: Service, ada: Client | None = None, **fields: Any) -> Sale:
    ada = ada or await service.organizer()
    [(starts,)] = await service.run_sql("select now() + interval '100 days'")
    event = await ada.create_event(**{**DYNAMIC, "capacity": 10, "datetime": starts.isoformat(), **fields})
    return Sale(service, ada, event)


@pytest.fixture
async def sale(service: Service) -> Sale:
    return await opened(service)


# Seats


async def test_a_seat_sold_ahead_of_time_raises_the_price(sale: Sale) -> None:
    await sale.register("ann")

    assert await sale.news() == [("registration", 2500, 2850)]
    assert await sale.price() == 2850


async def test_a_batch_is_one_change_however_many_seats_it_sells(sale: Sale) -> None:
    await sale.register("ann", "ben", "cal")

    assert await sale.news() == [("registration", 2500, 3550)]


async def test_the_last_seat_leaves_the_upper_bound(service: Service) -> None:
    sale = await opened(service, capacity=1)
    await sale.register("ann")

    assert await sale.news() == [("registration", 2500, 6000)]


async def test_neither_who_waits_to_be_settled_nor_who_waits_for_a_seat_moves_the_price(service: Service) -> None:
    sale = await opened(service, waitinglist_capacity=5)
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


async def test_a_seat_that_goes_straight_to_somebody_who_waited_changes_nothing(service: Service) -> None:
    sale = await opened(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")
    before = await sale.news()

    await sale.ada.delete(polls[0])

    assert await sale.news() == before


async def test_what_leaves_the_seats_as_they_are_leaves_the_price_as_it_is(service: Service) -> None:
    sale = await opened(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")
    before = await sale.news()
    await sale.days(50)

    await sale.ada.patch(polls[0], {"registration": {"amount_paid": 1}})
    await sale.ada.delete(polls[1])
    await sale.patch(title="Portraits", waitinglist_capacity=9)

    assert await sale.news() == before


async def test_one_batch_prices_each_of_its_events_by_its_own_seats(service: Service) -> None:
    ada = await service.organizer()
    dear, cheap = await opened(service, ada), await opened(service, ada, capacity=100)
    fixed = await ada.create_event(pricing_mode="fixed", price=700)
    await ada.register(fixed["id"], email="ann@example.com")
    await dear.register("ann", settle=False)
    await cheap.register("ann", "ben")

    assert (await dear.news(), await cheap.news()) == (
        [("registration", 2500, 2850)],
        [("registration", 2500, 2550)],
    )
    assert await Sale(service, ada, fixed).news() == []


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(people=st.integers(1, 14), batch=st.integers(1, 14))
async def test_the_price_is_the_same_however_settlement_cuts_its_batches(
    service: Service, people: int, batch: int
) -> None:
    at_once = await opened(service, capacity=12)
    in_parts = await opened(service, at_once.ada, capacity=12)
    names = [f"n{number}" for number in range(people)]
    await at_once.register(*names)
    await in_parts.register(*names, settle=False)

    await settlement.settle(service.database, batch=batch)

    assert await in_parts.price() == await at_once.price()


# Time


async def test_time_without_sales_lowers_the_price_at_the_next_tick(sale: Sale) -> None:
    await sale.days(50)
    assert await sale.news() == []

    assert await sale.tick() == 1

    assert await sale.news() == [("tick", 2500, 1750)]
    assert await sale.price() == 1750


def test_the_service_ticks_once_a_minute() -> None:
    assert Periodic("* * * * *", tick) in jobs.PERIODIC


async def test_a_tick_that_moves_no_level_is_no_change(sale: Sale) -> None:
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
    sales = [await opened(service, ada) for _ in range(3)]
    others = [await ada.create_event(), await ada.create_event(pricing_mode="fixed", price=700)]
    [(later,)] = await service.run_sql("select now() + interval '70 days'")

    assert await service.database.transact(lambda tx: tick(tx, later)) == 3

    assert [await sale.news() for sale in sales] == [[("tick", 2500, 1450)]] * 3
    assert [await Sale(service, ada, event).news() for event in others] == [[], []]


async def test_after_a_long_rest_the_prices_that_one_tick_cannot_move_follow_with_the_next(service: Service) -> None:
    ada = await service.organizer()
    sales = [await opened(service, ada) for _ in range(3)]
    for sale in sales:
        await sale.days(50)

    moved = [await service.database.transact(lambda tx: tick(tx, most=2)) for _ in range(3)]

    assert moved == [2, 1, 0]
    assert [await sale.price() for sale in sales] == [1750] * 3


async def test_a_tick_leaves_to_settlement_what_settlement_is_changing(sale: Sale) -> None:
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


# By hand


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
async def test_an_edit_is_a_change_when_it_moves_the_price(
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


async def test_a_new_price_is_that_of_a_sale_on_schedule_and_moves_as_before(sale: Sale) -> None:
    await sale.days(50)
    await sale.tick()

    await sale.patch(price=3000)

    assert (await sale.news())[1:] == [("manual_change", 1750, 2000)]


async def test_more_seats_lower_the_price_for_another_reason(sale: Sale) -> None:
    await sale.register("ann", "ben")

    await sale.patch(capacity=20)

    assert (await sale.news())[1:] == [("other", 3200, 2850)]


async def test_seats_that_go_to_those_who_waited_are_part_of_the_same_change(service: Service) -> None:
    sale = await opened(service, capacity=1, waitinglist_capacity=3)
    await sale.register("ann", "ben")

    await sale.patch(capacity=4)

    assert (await sale.news())[1:] == [("other", 6000, 4250)]


async def test_another_date_changes_the_price_for_another_reason(sale: Sale) -> None:
    await sale.days(50)
    await sale.tick()
    [(later,)] = await sale.service.run_sql("select datetime + interval '50 days' from events")

    await sale.patch(datetime=later.isoformat())

    assert (await sale.news())[1:] == [("other", 1750, 2000)]


async def test_an_edit_of_an_event_that_is_over_keeps_the_price_within_its_bounds(sale: Sale) -> None:
    await sale.service.run_sql("update events set datetime = now()")

    await sale.patch(price=900, min_price=800, max_price=1900)

    assert await sale.news() == [("manual_change", 2500, 1900)]


# Who pays what


async def test_everyone_accepted_before_the_price_moved_pays_what_they_were_shown(sale: Sale) -> None:
    first = await sale.register("ann", "ben")
    second = await sale.register("cal")

    paid = [(await sale.ada.get(poll)).json()["data"]["amount_paid"] for poll in [*first, *second]]

    assert paid == [2500, 2500, 3200]


async def test_who_is_promoted_pays_what_they_were_shown_when_they_asked(service: Service) -> None:
    sale = await opened(service, capacity=1, waitinglist_capacity=1)
    polls = await sale.register("ann", "ben")

    await sale.ada.delete(polls[0])

    promoted = (await sale.ada.get(polls[1])).json()["data"]
    assert (promoted["status"], promoted["amount_paid"]) == ("registered", 2500)


# Whatever happens

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from("abcdef")),
        st.tuples(st.just("delete"), st.sampled_from("abcdef")),
        st.tuples(st.just("waitlisted"), st.sampled_from("abcdef")),
        st.tuples(st.just("registered"), st.sampled_from("abcdef")),
        st.tuples(st.just("capacity"), st.integers(3, 9)),
        st.tuples(st.just("price"), st.sampled_from([1000, 1111, 2500, 6000])),
        st.tuples(st.just("min_price"), st.sampled_from([900, 999, 1000])),
        st.tuples(st.just("days"), st.integers(1, 30)),
        st.tuples(st.just("tick"), st.none()),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_whatever_happens_the_history_is_a_chain_that_ends_at_the_price_the_policy_gives(
    service: Service, steps: Sequence[tuple[str, Any]]
) -> None:
    sale = await opened(service, capacity=4, waitinglist_capacity=2)
    polls: dict[str, str] = {}
    for step, value in steps:
        match step:
            case "register":
                body = {"registration": {"event_id": sale.id, "email": f"{value}@example.com"}}
                answer = await sale.ada.post("/api/registrations", body)
                if answer.status_code == 202:
                    polls[value] = answer.json()["next"]["url"]
                await service.settle()
            case "delete" if value in polls:
                await sale.ada.delete(polls[value])
            case "waitlisted" | "registered" if value in polls:
                await sale.ada.patch(polls[value], {"registration": {"status": step}})
            case "capacity" | "price" | "min_price":
                await sale.ada.patch(sale.address, {"event": {step: value}})
            case "days":
                await sale.days(value)
            case "tick":
                await sale.tick()
            case _:
                pass
    await sale.tick()

    history = await sale.history()
    assert history[0] == ("init", None, 2500)
    assert [each[1] for each in history[1:]] == [each[2] for each in history[:-1]]
    assert all(original != new for _, original, new in history)
    assert all(900 <= new <= 6000 for _, _, new in history)
    assert await sale.price() == history[-1][2]
    if await service.run_sql("select datetime > now() from events where id = %(id)s", id=sale.id) == [(True,)]:
        assert await sale.price() == await sale.by_policy()
