"""Visitors are released from the front of the queue, at the rate and never faster, while the queue is open."""

from datetime import UTC, datetime, timedelta

from holdfast.events.queues import release
from holdfast.kit.background.leaders import MAX_TAKEOVER_SECONDS
from holdfast.kit.postgres.connection_pool import STALL_TIMEOUT_SECONDS
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service


def moment_after(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_the_first_is_released_one_step_after_the_queue_began(queue: QueueScene) -> None:
    await queue.pass_time(1000)
    await queue.join("ann", "ben")

    assert await queue.release() == 0
    assert await queue.position("ann") == 1
    assert await queue.tick(0.5) == 0
    assert await queue.tick(0.5) == 1
    assert (await queue.position("ann"), await queue.position("ben")) == (None, 1)


async def test_a_late_release_catches_up_so_that_no_visitor_waits_longer_than_estimated(queue: QueueScene) -> None:
    await queue.join(*(f"visitor{number}" for number in range(12)))

    assert await queue.tick(1.25, times=8) == 10


async def test_a_takeover_by_another_process_delays_no_visitor_beyond_the_estimate(service: Service) -> None:
    queue = await open_queue(service, release_rate=600)
    await queue.join(*(f"visitor{number}" for number in range(50)))

    assert await queue.tick(MAX_TAKEOVER_SECONDS) == 10 * MAX_TAKEOVER_SECONDS
    assert await queue.tick(0.5) == 5


async def test_a_queue_locked_by_a_stalled_process_delays_no_visitor_beyond_the_estimate(
    service: Service,
) -> None:
    queue = await open_queue(service, release_rate=600)
    await queue.join(*(f"visitor{number}" for number in range(200)))
    seconds = STALL_TIMEOUT_SECONDS + MAX_TAKEOVER_SECONDS

    assert await queue.tick(seconds) == 10 * seconds
    assert await queue.tick(0.5) == 5


async def test_a_pause_of_ten_minutes_without_a_process_is_not_caught_up(service: Service) -> None:
    queue = await open_queue(service, release_rate=600)
    await queue.join(*(f"visitor{number}" for number in range(200)))

    assert await queue.tick(600) == 10 * release.MAX_CATCH_UP_SECONDS + 1
    assert await queue.release() == 0
    assert await queue.tick(0.5) == 5


async def test_a_slow_queue_that_was_left_alone_releases_one(service: Service) -> None:
    queue = await open_queue(service, release_rate=2)
    await queue.join("ann", "ben", "cal")

    assert await queue.tick(600) == 1
    assert await queue.release() == 0
    assert await queue.tick(30.1) == 1


async def test_releases_are_not_saved_up_while_the_queue_is_empty(queue: QueueScene) -> None:
    await queue.join("ann")
    assert await queue.tick() == 1
    await queue.pass_time(600)
    await queue.join("ben", "cal", "dan")

    assert await queue.release() == 0
    assert await queue.tick() == 1
    assert await queue.release() == 0


async def test_a_clock_set_back_an_hour_does_not_stop_the_queue(queue: QueueScene) -> None:
    await queue.join("ann", "ben", "cal")
    assert await queue.tick() == 1
    await queue.pass_time(-3600)

    assert await queue.release() == 0
    assert await queue.tick(1.1) == 1
    assert await queue.tick(1.1) == 1


async def test_a_clock_set_back_before_the_start_stops_releases_until_the_start(queue: QueueScene) -> None:
    await queue.join("ann", "ben", "cal")
    assert await queue.tick() == 1
    await queue.service.run_sql(
        "update queues set paced_at = now() + interval '1 hour', starts_at = now() + interval '1 day'"
    )

    assert await release.release_due(queue.service.database) == 0
    assert await queue.service.database.read(release.read_due) == []

    await queue.service.run_sql("update queues set starts_at = now() - interval '1 hour', paced_at = now()")
    assert await queue.tick(1.1) == 1


async def test_a_changed_release_rate_applies_from_now_on(queue: QueueScene) -> None:
    await queue.join(*(f"visitor{number}" for number in range(40)))
    assert await queue.tick(times=5) == 5
    await queue.pass_time(0.9)
    await queue.change(release_rate=600)

    assert await queue.release() == 0
    assert await queue.tick(0.5) == 5
    assert (await queue.status("visitor39"))["estimated_wait_seconds"] == 3

    await queue.change(release_rate=6)
    assert (await queue.status("visitor39"))["estimated_wait_seconds"] == 300
    assert await queue.tick(9.5) == 0
    assert await queue.tick(0.6) == 1


async def test_visitors_released_before_do_not_count_towards_a_lower_rate(service: Service) -> None:
    queue = await open_queue(service, release_rate=60)
    await queue.join("ann", "ben", "cal", "dan")
    assert await queue.tick() == 1
    await queue.change(release_rate=2)

    assert await queue.tick(30) == 1
    assert (await queue.status("cal"))["estimated_wait_seconds"] == 30
    assert await queue.tick(30) == 1
    assert await queue.tick(30) == 1


async def test_a_paused_queue_releases_no_visitors_and_starts_again_without_a_burst(queue: QueueScene) -> None:
    await queue.join("ann", "ben", "cal")
    await queue.tick()
    await queue.change(active=False)

    assert await queue.tick(times=5) == 0
    assert (await queue.status("ben"))["position"] == 1

    await queue.change(active=True)
    assert await queue.release() == 0
    assert await queue.tick() == 1


async def test_an_edit_that_keeps_the_rate_delays_no_visitor(queue: QueueScene) -> None:
    await queue.join("ann")
    await queue.pass_time(1)
    await queue.change(title="Summer sale", release_rate=60)

    assert await queue.release() == 1


async def test_a_visitor_is_not_released_before_the_start(service: Service) -> None:
    queue = await open_queue(service, starts_at=moment_after(100))
    await queue.join("ann", "ben")
    wait_seconds = (await queue.status("ann"))["estimated_wait_seconds"]

    assert await queue.tick(50) == 0
    assert await queue.tick(49) == 0
    assert await queue.tick(2.1) == 1
    assert wait_seconds in (100, 101)


async def test_a_visitor_is_not_released_after_the_end(service: Service) -> None:
    queue = await open_queue(service, ends_at=moment_after(2.5))
    await queue.join("ann", "ben", "cal")

    assert await queue.tick(times=4) == 2
    assert await queue.status("cal") == {"status": "not_in_queue"}


async def test_a_visitor_is_not_released_from_a_deleted_queue(queue: QueueScene) -> None:
    await queue.join("ann")
    assert (await queue.ada.delete(queue.path)).status_code == 204

    assert await queue.tick(times=3) == 0


async def test_several_queues_keep_their_own_pace(service: Service) -> None:
    ada = await service.organizer()
    queues = [await open_queue(service, ada, release_rate=rate) for rate in (60, 120, 6)]
    for queue in queues:
        await queue.join(*(f"visitor{number}" for number in range(30)))
    for _ in range(10):
        for queue in queues:
            await queue.pass_time(1)
        await queues[0].release()

    assert [30 - await queue.length() for queue in queues] == [10, 20, 1]


async def test_metrics_count_visitors_who_joined_and_were_released(queue: QueueScene) -> None:
    before = await figures(queue)
    await queue.join("ann", "ann", "ben")
    await queue.tick()
    await queue.verify(await queue.token("ann"))
    await queue.verify("x")
    await queue.service.database.read(release.poll_status)
    after = await figures(queue)

    def grown(name: str) -> float:
        return after[f"holdfast_queue_{name}"] - before.get(f"holdfast_queue_{name}", 0)

    assert (grown("joined_total"), grown("released_total"), grown("tokens_issued_total")) == (2, 1, 1)
    assert grown('tokens_verified_total{outcome="valid"}') == 1
    assert grown('tokens_verified_total{outcome="signature"}') == 1
    assert grown("release_late_seconds_count") == 1
    assert after["holdfast_queue_waiting"] == 1


async def figures(queue: QueueScene) -> dict[str, float]:
    samples = (await queue.service.http.get("/metrics")).text.splitlines()
    pairs = (sample.rsplit(" ", 1) for sample in samples if not sample.startswith("#"))
    return {name: float(value) for name, value in pairs}
