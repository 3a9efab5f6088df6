"""The rate and the order are kept, and no visitor waits longer than the page said."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.events.queues import release
from tests.events.queues.queue_scene import Released, log, open_queue
from tests.helpers.events_service import Service


def most_in_a_window(released: Released, seconds: float) -> int:
    """The greatest number released in any half-open window of this length."""
    times = [at for _, at in released]
    return max((sum(at <= other < at + seconds for other in times) for at in times), default=0)


Step = tuple[str, float]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("tick"), st.floats(0.01, 2)),
        st.tuples(st.just("tick"), st.floats(0.01, 2)),
        st.tuples(st.just("sleep"), st.floats(0.1, 30)),
        st.tuples(st.just("join"), st.integers(1, 40)),
        st.tuples(st.just("pause"), st.just(0)),
        st.tuples(st.just("resume"), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


@pytest.mark.parametrize("rate", [7, 60, 600, 6000])
@hypothesis(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
async def test_a_queue_always_keeps_its_rate_and_order_and_no_position_rises(
    service: Service, rate: int, steps: Sequence[Step]
) -> None:
    queue = await open_queue(service, release_rate=rate)
    joined: list[str] = []
    seen: dict[str, int] = {}
    for step, amount in [("join", 5), *steps]:
        match step:
            case "tick":
                await queue.tick(amount)
            case "sleep":
                await queue.pass_time(amount)
            case "join":
                names = [f"visitor{number}" for number in range(len(joined), len(joined) + int(amount))]
                answers = await asyncio.gather(*(queue.ask_to_join(name) for name in names))
                if answers[0].status_code == 202:
                    joined += names
            case _:
                await queue.change(active=step == "resume")
        for name in {*joined[:3], *joined[-3:]}:
            position = await queue.position(name) or 0
            assert position <= seen.get(name, position)
            seen[name] = position

    released = await log(queue)
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert await queue.length() == len(joined) - len(released)
    assert most_in_a_window(released, 60) <= rate
    # In shorter windows there is at most what the catch-up allows.
    for seconds in (1, 5, 20):
        step = 60 / rate
        assert most_in_a_window(released, seconds) <= (seconds + release.MAX_CATCH_UP_SECONDS) / step + 2


@hypothesis(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rate=st.sampled_from([2, 6, 40, 60, 90, 600, 6000]),
    late=st.lists(st.floats(0, 0.9), min_size=10, max_size=40),
    waiting=st.integers(1, 60),
)
async def test_late_releases_delay_no_visitor_beyond_the_estimate(
    service: Service, rate: int, late: Sequence[float], waiting: int
) -> None:
    queue = await open_queue(service, release_rate=rate)
    await asyncio.gather(*(queue.ask_to_join(f"visitor{number}") for number in range(waiting)))
    statuses = await asyncio.gather(*(queue.status(f"visitor{number}") for number in range(waiting)))
    await queue.pass_time(0)
    passed = 0.0
    for delay in late:
        # A process comes when a visitor is due, and some time later.
        wait = await service.database.read(release.poll_status)
        passed += wait + delay
        await queue.tick(wait + delay)

    waits = {status["position"]: status["estimated_wait_seconds"] for status in statuses}
    for ticket, at in await log(queue):
        # The last tick was at `queue.now`, which is `passed` seconds after all were told. A long delay stays in the
        # queue for good, since an interval must lie between a release and the one `release_rate` later.
        rounds = 1 + waits[ticket] // 60
        assert passed - (queue.now - at) <= waits[ticket] + rounds * max(late) + 0.5
