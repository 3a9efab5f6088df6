"""The history of a price is a chain without gaps, after any changes of the event."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.events.pricing.sale import open_sale
from tests.helpers.events_service import Service

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


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_a_price_history_is_always_a_chain_that_ends_at_the_price_of_the_policy(
    service: Service, steps: Sequence[tuple[str, Any]]
) -> None:
    sale = await open_sale(service, capacity=4, waitinglist_capacity=2)
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
    assert [change[1] for change in history[1:]] == [change[2] for change in history[:-1]]
    assert all(original != new for _, original, new in history)
    assert all(900 <= new <= 6000 for _, _, new in history)
    assert await sale.price() == history[-1][2]
    if await service.run_sql("select datetime > now() from events where id = %(id)s", id=sale.id) == [(True,)]:
        assert await sale.price() == await sale.by_policy()
