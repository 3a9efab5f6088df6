"""Visitors are deleted 30 days after their token can last be valid, and with their queue; waiting ones never."""

import pytest

from holdfast.events.queues import visitor_retention
from tests.events.log.log_scene import seal_logs
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service

DAY = 86_400


async def forget(service: Service) -> int:
    return await service.database.transact(visitor_retention.forget_visitors)


async def stored_visitors(service: Service) -> list[str]:
    rows = await service.run_sql("select visitor_id from queue_visitors order by ticket")
    return [visitor for (visitor,) in rows]


async def test_visitors_released_long_ago_are_deleted_and_waiting_ones_are_not(
    queue: QueueScene, service: Service
) -> None:
    others = [f"visitor{number}" for number in range(17)]
    await queue.join("ann", *others)
    await queue.tick()
    await queue.token("ann")
    await queue.pass_time(20 * DAY)
    assert await queue.tick() == 16
    assert await forget(service) == 0

    await queue.pass_time(11 * DAY)
    assert await forget(service) == 2
    assert await stored_visitors(service) == others
    assert await queue.position(others[-1]) == 1
    assert await queue.status("ann") == {"status": "not_in_queue"}
    assert await forget(service) == 0


async def test_a_deleted_visitor_may_join_again(queue: QueueScene, service: Service) -> None:
    await queue.join("ann", "ben")
    await queue.tick()
    await queue.pass_time(31 * DAY)
    await forget(service)

    await queue.join("ann")
    assert await queue.position("ann") == 2


async def test_a_deleted_queue_is_forgotten_with_all_its_visitors(service: Service) -> None:
    ada = await service.organizer()
    present, deleted = await open_queue(service, ada), await open_queue(service, ada, public_log=False)
    for queue in (present, deleted):
        await queue.join("ann", "ben")
        await queue.tick()
    await ada.delete(deleted.path)

    assert await forget(service) == 4
    assert await service.run_sql("select id from queues") == [(present.id,)]
    assert await stored_visitors(service) == ["ann", "ben"]


async def test_a_deleted_queue_with_a_log_leaves_only_the_log(service: Service) -> None:
    queue = await open_queue(service, title="For Ann's friends")
    await queue.join("ann")
    await seal_logs(service)
    head = (await service.http.get(f"/log/queues/{queue.id}/checkpoint")).text
    await queue.ada.delete(queue.path)

    assert [await forget(service) for _ in range(2)] == [2, 0]
    assert await service.run_sql("select title, description, target_url from queues") == [
        ("", None, visitor_retention.NO_URL)
    ]
    assert await stored_visitors(service) == []
    await seal_logs(service)
    entries = (await service.http.get(f"/log/queues/{queue.id}/tile/entries/000.p/5")).content
    assert b'"reason":"deleted"' in entries
    assert (await service.http.get(f"/log/queues/{queue.id}/proofs/1")).status_code == 200
    assert (await service.http.get(f"/log/queues/{queue.id}/checkpoint")).text != head
    assert (await queue.ada.get(queue.path)).status_code == 404


async def test_visitors_are_deleted_in_batches(
    queue: QueueScene, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitor_retention, "DELETE_BATCH_SIZE", 2)
    await queue.join("ann", "ben", "cal")
    await queue.tick()
    await queue.ada.delete(queue.path)

    portions = [await forget(service) for _ in range(3)]

    assert portions == [3, 2, 0]
    assert await stored_visitors(service) == []
