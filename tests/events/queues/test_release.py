"""Release: at the front of the line, at the rate and never faster, by whatever process is there."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.events.queues import release
from tests.events.queues.scene import Line, open_line
from tests.support import Service, eventually

Released = list[tuple[int, float]]
"""Tickets and the second in which they were released."""


async def log(line: Line) -> Released:
    rows = await line.service.run_sql(
        """
        select first_ticket, last_ticket, extract(epoch from released_at)::float8
          from queue_releases where queue_id = %(id)s order by last_ticket
        """,
        id=line.id,
    )
    return [(ticket, at) for first, last, at in rows for ticket in range(first, last + 1)]


def most_in_a_window(released: Released, seconds: float) -> int:
    """The greatest number released in any half-open window of this length."""
    times = [at for _, at in released]
    return max((sum(at <= other < at + seconds for other in times) for at in times), default=0)


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_the_first_is_released_one_step_after_the_line_began(line: Line) -> None:
    await line.pass_time(1000)
    await line.join("ann", "ben")

    assert await line.release() == 0
    assert await line.position("ann") == 1
    assert await line.tick(0.5) == 0
    assert await line.tick(0.5) == 1
    assert (await line.position("ann"), await line.position("ben")) == (None, 1)


async def test_a_late_release_is_made_up_for_so_that_nobody_waits_longer_than_was_told(line: Line) -> None:
    await line.join(*(f"visitor{number}" for number in range(12)))

    assert await line.tick(1.25, times=8) == 10


async def test_ten_minutes_without_a_process_are_not_made_up_for(service: Service) -> None:
    line = await open_line(service, release_rate=600)
    await line.join(*(f"visitor{number}" for number in range(50)))

    assert await line.tick(600) == 10 * release.CATCH_UP + 1
    assert await line.release() == 0
    assert await line.tick(0.5) == 5


async def test_a_slow_queue_that_was_left_alone_releases_one(service: Service) -> None:
    line = await open_line(service, release_rate=2)
    await line.join("ann", "ben", "cal")

    assert await line.tick(600) == 1
    assert await line.release() == 0
    assert await line.tick(30.1) == 1


async def test_nothing_is_saved_up_while_nobody_waits(line: Line) -> None:
    await line.join("ann")
    assert await line.tick() == 1
    await line.pass_time(600)
    await line.join("ben", "cal", "dan")

    assert await line.release() == 0
    assert await line.tick() == 1
    assert await line.release() == 0


async def test_a_clock_set_back_an_hour_does_not_stop_the_queue(line: Line) -> None:
    await line.join("ann", "ben", "cal")
    assert await line.tick() == 1
    await line.pass_time(-3600)

    assert await line.release() == 0
    assert await line.tick(1.1) == 1
    assert await line.tick(1.1) == 1


async def test_another_rate_applies_from_now_on(line: Line) -> None:
    await line.join(*(f"visitor{number}" for number in range(40)))
    assert await line.tick(times=5) == 5
    await line.pass_time(0.9)
    await line.change(release_rate=600)

    assert await line.release() == 0
    assert await line.tick(0.5) == 5
    assert (await line.status("visitor39"))["estimated_wait_seconds"] == 3

    await line.change(release_rate=6)
    assert (await line.status("visitor39"))["estimated_wait_seconds"] == 300
    assert await line.tick(9.5) == 0
    assert await line.tick(0.6) == 1


async def test_a_paused_queue_releases_nobody_and_starts_again_without_a_burst(line: Line) -> None:
    await line.join("ann", "ben", "cal")
    await line.tick()
    await line.change(active=False)

    assert await line.tick(times=5) == 0
    assert (await line.status("ben"))["position"] == 1

    await line.change(active=True)
    assert await line.release() == 0
    assert await line.tick() == 1


async def test_an_edit_that_leaves_the_rate_alone_delays_nobody(line: Line) -> None:
    await line.join("ann")
    await line.pass_time(1)
    await line.change(title="Summer sale", release_rate=60)

    assert await line.release() == 1


async def test_nobody_is_released_before_the_start(service: Service) -> None:
    line = await open_line(service, starts_at=soon(100))
    await line.join("ann", "ben")
    told = (await line.status("ann"))["estimated_wait_seconds"]

    assert await line.tick(50) == 0
    assert await line.tick(49) == 0
    assert await line.tick(2.1) == 1
    assert told in (100, 101)


async def test_nobody_is_released_after_the_end(service: Service) -> None:
    line = await open_line(service, ends_at=soon(2.5))
    await line.join("ann", "ben", "cal")

    assert await line.tick(times=4) == 2
    assert await line.status("cal") == {"status": "not_in_queue"}


async def test_nobody_is_released_from_a_deleted_queue(line: Line) -> None:
    await line.join("ann")
    assert (await line.ada.delete(line.path)).status_code == 204

    assert await line.tick(times=3) == 0


async def test_several_queues_keep_their_own_pace(service: Service) -> None:
    ada = await service.organizer()
    lines = [await open_line(service, ada, release_rate=rate) for rate in (60, 120, 6)]
    for line in lines:
        await line.join(*(f"visitor{number}" for number in range(30)))
    for _ in range(10):
        for line in lines:
            await line.pass_time(1)
        await lines[0].release()

    assert [30 - await line.length() for line in lines] == [10, 20, 1]


async def test_a_queue_that_others_hold_is_waited_for_and_keeps_no_other_waiting(service: Service) -> None:
    busy, free = await open_line(service), await open_line(service)
    for line in (busy, free):
        await line.join("ann")
        await line.pass_time(1)

    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from queues where id = %s for update", [busy.id])
        assert await release.release(service.database) == 1
        assert (await free.position("ann"), await busy.length()) == (None, 1)
    assert await release.release(service.database) == 1


async def test_processes_that_release_at_once_release_nobody_twice(service: Service) -> None:
    line = await open_line(service, release_rate=600)
    await line.join(*(f"visitor{number}" for number in range(60)))
    for _ in range(40):
        await line.pass_time(0.1)
        await asyncio.gather(*(release.release(service.database) for _ in range(4)))

    released = await log(line)
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert len(released) == 60 - await line.length()
    assert 39 <= len(released) <= 41


async def test_joining_and_releasing_at_once_lose_nobody(service: Service) -> None:
    line = await open_line(service, release_rate=6000)
    began = asyncio.get_running_loop().time()

    async def release_meanwhile() -> None:
        while asyncio.get_running_loop().time() < began + 1.5:
            await release.release(service.database)

    visitors = [f"visitor{number}" for number in range(200)]
    answers, *_ = await asyncio.gather(
        asyncio.gather(*(line.ask_to_join(visitor) for visitor in visitors)), release_meanwhile(), release_meanwhile()
    )

    released = await log(line)
    assert {answer.status_code for answer in answers} == {202}
    assert await service.run_sql("select count(distinct ticket), max(ticket) from queue_visitors") == [(200, 200)]
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert len(released) + await line.length() == 200
    assert 0 < len(released) <= 100 * (asyncio.get_running_loop().time() - began)


async def test_figures_tell_who_joined_and_was_released(line: Line) -> None:
    before = await figures(line)
    await line.join("ann", "ann", "ben")
    await line.tick()
    await line.verify(await line.token("ann"))
    await line.verify("x")
    await line.service.database.read(release.seconds_to_next)
    after = await figures(line)

    def grown(name: str) -> float:
        return after[f"holdfast_queue_{name}"] - before.get(f"holdfast_queue_{name}", 0)

    assert (grown("joined_total"), grown("released_total"), grown("tokens_issued_total")) == (2, 1, 1)
    assert grown('tokens_verified_total{outcome="valid"}') == 1
    assert grown('tokens_verified_total{outcome="signature"}') == 1
    assert grown("release_late_seconds_count") == 1
    assert after["holdfast_queue_waiting"] == 1


async def figures(line: Line) -> dict[str, float]:
    lines = (await line.service.http.get("/metrics")).text.splitlines()
    return {name: float(value) for name, value in (each.rsplit(" ", 1) for each in lines if not each.startswith("#"))}


async def test_the_loop_releases_as_soon_as_somebody_is_due(service: Service) -> None:
    line = await open_line(service, release_rate=1200)
    loop = asyncio.create_task(release.run(service.database))
    try:
        await line.join("ann", "ben", "cal")

        async def nobody_waits() -> bool:
            return await line.length() == 0

        await eventually(nobody_waits)
    finally:
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop
    released = await log(line)
    assert [ticket for ticket, _ in released] == [1, 2, 3]
    ((began,),) = await service.run_sql("select extract(epoch from min(joined_at))::float8 from queue_visitors")
    assert [at >= began + 0.05 * ticket for ticket, at in released] == [True] * 3


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
@hypothesis(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
async def test_whatever_happens_the_rate_is_kept_the_order_is_kept_and_no_position_rises(
    service: Service, rate: int, steps: Sequence[Step]
) -> None:
    line = await open_line(service, release_rate=rate)
    joined: list[str] = []
    seen: dict[str, int] = {}
    for step, amount in [("join", 5), *steps]:
        match step:
            case "tick":
                await line.tick(amount)
            case "sleep":
                await line.pass_time(amount)
            case "join":
                names = [f"visitor{number}" for number in range(len(joined), len(joined) + int(amount))]
                answers = await asyncio.gather(*(line.ask_to_join(name) for name in names))
                if answers[0].status_code == 202:
                    joined += names
            case _:
                await line.change(active=step == "resume")
        for name in {*joined[:3], *joined[-3:]}:
            position = await line.position(name) or 0
            assert position <= seen.get(name, position)
            seen[name] = position

    released = await log(line)
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert await line.length() == len(joined) - len(released)
    assert most_in_a_window(released, 60) <= rate
    # In shorter windows there is at most what the catch-up allows.
    for seconds in (1, 5, 20):
        step = 60 / rate
        assert most_in_a_window(released, seconds) <= (seconds + release.CATCH_UP) / step + 2


@hypothesis(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rate=st.sampled_from([2, 6, 40, 60, 90, 600, 6000]),
    late=st.lists(st.floats(0, 0.9), min_size=10, max_size=40),
    waiting=st.integers(1, 60),
)
async def test_nobody_waits_longer_than_was_told_though_releases_come_late(
    service: Service, rate: int, late: Sequence[float], waiting: int
) -> None:
    line = await open_line(service, release_rate=rate)
    await asyncio.gather(*(line.ask_to_join(f"visitor{number}") for number in range(waiting)))
    statuses = await asyncio.gather(*(line.status(f"visitor{number}") for number in range(waiting)))
    await line.pass_time(0)
    passed = 0.0
    for delay in late:
        # A process comes when somebody is due, and some time later.
        wait = await service.database.read(release.seconds_to_next)
        passed += wait + delay
        await line.tick(wait + delay)

    told = {status["position"]: status["estimated_wait_seconds"] for status in statuses}
    for ticket, at in await log(line):
        # The last tick was at `line.now`, which is `passed` seconds after all were told. A long delay stays in the
        # line for good, since an interval must lie between a release and the one `release_rate` later.
        rounds = 1 + told[ticket] // 60
        assert passed - (line.now - at) <= told[ticket] + rounds * max(late) + 0.5
