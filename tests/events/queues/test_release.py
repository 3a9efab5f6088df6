"""Visitors are released from the front of the line, at the rate and never faster, while the queue is open."""

from datetime import UTC, datetime, timedelta

from holdfast.events.queues import release
from holdfast.kit.background.leaders import MAX_TAKEOVER_SECONDS
from holdfast.kit.postgres.connection_pool import STALL_TIMEOUT_SECONDS
from tests.events.queues.scene import QueueScene, open_line
from tests.support import Service


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_the_first_is_released_one_step_after_the_line_began(line: QueueScene) -> None:
    await line.pass_time(1000)
    await line.join("ann", "ben")

    assert await line.release() == 0
    assert await line.position("ann") == 1
    assert await line.tick(0.5) == 0
    assert await line.tick(0.5) == 1
    assert (await line.position("ann"), await line.position("ben")) == (None, 1)


async def test_a_late_release_catches_up_so_that_no_visitor_waits_longer_than_estimated(line: QueueScene) -> None:
    await line.join(*(f"visitor{number}" for number in range(12)))

    assert await line.tick(1.25, times=8) == 10


async def test_a_takeover_by_another_process_delays_no_visitor_beyond_the_estimate(service: Service) -> None:
    line = await open_line(service, release_rate=600)
    await line.join(*(f"visitor{number}" for number in range(50)))

    assert await line.tick(MAX_TAKEOVER_SECONDS) == 10 * MAX_TAKEOVER_SECONDS
    assert await line.tick(0.5) == 5


async def test_a_queue_locked_by_a_stalled_process_delays_no_visitor_beyond_the_estimate(
    service: Service,
) -> None:
    line = await open_line(service, release_rate=600)
    await line.join(*(f"visitor{number}" for number in range(200)))
    seconds = STALL_TIMEOUT_SECONDS + MAX_TAKEOVER_SECONDS

    assert await line.tick(seconds) == 10 * seconds
    assert await line.tick(0.5) == 5


async def test_a_pause_of_ten_minutes_without_a_process_is_not_caught_up(service: Service) -> None:
    line = await open_line(service, release_rate=600)
    await line.join(*(f"visitor{number}" for number in range(200)))

    assert await line.tick(600) == 10 * release.MAX_CATCH_UP_SECONDS + 1
    assert await line.release() == 0
    assert await line.tick(0.5) == 5


async def test_a_slow_queue_that_was_left_alone_releases_one(service: Service) -> None:
    line = await open_line(service, release_rate=2)
    await line.join("ann", "ben", "cal")

    assert await line.tick(600) == 1
    assert await line.release() == 0
    assert await line.tick(30.1) == 1


async def test_releases_are_not_saved_up_while_the_queue_is_empty(line: QueueScene) -> None:
    await line.join("ann")
    assert await line.tick() == 1
    await line.pass_time(600)
    await line.join("ben", "cal", "dan")

    assert await line.release() == 0
    assert await line.tick() == 1
    assert await line.release() == 0


async def test_a_clock_set_back_an_hour_does_not_stop_the_queue(line: QueueScene) -> None:
    await line.join("ann", "ben", "cal")
    assert await line.tick() == 1
    await line.pass_time(-3600)

    assert await line.release() == 0
    assert await line.tick(1.1) == 1
    assert await line.tick(1.1) == 1


async def test_a_clock_set_back_before_the_start_stops_releases_until_the_start(line: QueueScene) -> None:
    await line.join("ann", "ben", "cal")
    assert await line.tick() == 1
    await line.service.run_sql(
        "update queues set paced_at = now() + interval '1 hour', starts_at = now() + interval '1 day'"
    )

    assert await release.release(line.service.database) == 0
    assert await line.service.database.read(release.read_due) == []

    await line.service.run_sql("update queues set starts_at = now() - interval '1 hour', paced_at = now()")
    assert await line.tick(1.1) == 1


async def test_a_changed_release_rate_applies_from_now_on(line: QueueScene) -> None:
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


async def test_visitors_released_before_do_not_count_towards_a_lower_rate(service: Service) -> None:
    line = await open_line(service, release_rate=60)
    await line.join("ann", "ben", "cal", "dan")
    assert await line.tick() == 1
    await line.change(release_rate=2)

    assert await line.tick(30) == 1
    assert (await line.status("cal"))["estimated_wait_seconds"] == 30
    assert await line.tick(30) == 1
    assert await line.tick(30) == 1


async def test_a_paused_queue_releases_no_visitors_and_starts_again_without_a_burst(line: QueueScene) -> None:
    await line.join("ann", "ben", "cal")
    await line.tick()
    await line.change(active=False)

    assert await line.tick(times=5) == 0
    assert (await line.status("ben"))["position"] == 1

    await line.change(active=True)
    assert await line.release() == 0
    assert await line.tick() == 1


async def test_an_edit_that_keeps_the_rate_delays_no_visitor(line: QueueScene) -> None:
    await line.join("ann")
    await line.pass_time(1)
    await line.change(title="Summer sale", release_rate=60)

    assert await line.release() == 1


async def test_a_visitor_is_not_released_before_the_start(service: Service) -> None:
    line = await open_line(service, starts_at=soon(100))
    await line.join("ann", "ben")
    wait_seconds = (await line.status("ann"))["estimated_wait_seconds"]

    assert await line.tick(50) == 0
    assert await line.tick(49) == 0
    assert await line.tick(2.1) == 1
    assert wait_seconds in (100, 101)


async def test_a_visitor_is_not_released_after_the_end(service: Service) -> None:
    line = await open_line(service, ends_at=soon(2.5))
    await line.join("ann", "ben", "cal")

    assert await line.tick(times=4) == 2
    assert await line.status("cal") == {"status": "not_in_queue"}


async def test_a_visitor_is_not_released_from_a_deleted_queue(line: QueueScene) -> None:
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


async def test_metrics_count_visitors_who_joined_and_were_released(line: QueueScene) -> None:
    before = await figures(line)
    await line.join("ann", "ann", "ben")
    await line.tick()
    await line.verify(await line.token("ann"))
    await line.verify("x")
    await line.service.database.read(release.poll_status)
    after = await figures(line)

    def grown(name: str) -> float:
        return after[f"holdfast_queue_{name}"] - before.get(f"holdfast_queue_{name}", 0)

    assert (grown("joined_total"), grown("released_total"), grown("tokens_issued_total")) == (2, 1, 1)
    assert grown('tokens_verified_total{outcome="valid"}') == 1
    assert grown('tokens_verified_total{outcome="signature"}') == 1
    assert grown("release_late_seconds_count") == 1
    assert after["holdfast_queue_waiting"] == 1


async def figures(line: QueueScene) -> dict[str, float]:
    lines = (await line.service.http.get("/metrics")).text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}
