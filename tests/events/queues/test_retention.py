"""Visitors are deleted 30 days after their release, and with their queue; waiting ones never."""

import pytest

from holdfast.events.queues import retention
from tests.events.log.scene import seal_logs
from tests.events.queues.scene import QueueScene, open_line
from tests.support import Service

DAY = 86_400


async def forget(service: Service) -> int:
    return await service.database.transact(retention.forget_visitors)


async def remembered(service: Service) -> list[str]:
    rows = await service.run_sql("select visitor_id from queue_visitors order by ticket")
    return [visitor for (visitor,) in rows]


async def test_visitors_released_long_ago_are_deleted_and_waiting_ones_are_not(
    line: QueueScene, service: Service
) -> None:
    others = [f"visitor{number}" for number in range(17)]
    await line.join("ann", *others)
    await line.tick()
    await line.token("ann")
    await line.pass_time(20 * DAY)
    assert await line.tick() == 16
    assert await forget(service) == 0

    await line.pass_time(11 * DAY)
    assert await forget(service) == 2
    assert await remembered(service) == others
    assert await line.position(others[-1]) == 1
    assert await line.status("ann") == {"status": "not_in_queue"}
    assert await forget(service) == 0


async def test_a_deleted_visitor_may_join_again(line: QueueScene, service: Service) -> None:
    await line.join("ann", "ben")
    await line.tick()
    await line.pass_time(31 * DAY)
    await forget(service)

    await line.join("ann")
    assert await line.position("ann") == 2


async def test_a_deleted_queue_is_forgotten_with_all_its_visitors(service: Service) -> None:
    ada = await service.organizer()
    present, deleted = await open_line(service, ada), await open_line(service, ada, public_log=False)
    for line in (present, deleted):
        await line.join("ann", "ben")
        await line.tick()
    await ada.delete(deleted.path)

    assert await forget(service) == 4
    assert await service.run_sql("select id from queues") == [(present.id,)]
    assert await remembered(service) == ["ann", "ben"]


async def test_a_deleted_queue_with_a_log_leaves_only_the_log(service: Service) -> None:
    line = await open_line(service, title="For Ann's friends")
    await line.join("ann")
    await seal_logs(service)
    head = (await service.http.get(f"/log/queues/{line.id}/checkpoint")).text
    await line.ada.delete(line.path)

    assert [await forget(service) for _ in range(2)] == [2, 0]
    assert await service.run_sql("select title, description, target_url from queues") == [("", None, retention.NO_URL)]
    assert await remembered(service) == []
    await seal_logs(service)
    entries = (await service.http.get(f"/log/queues/{line.id}/tile/entries/000.p/5")).content
    assert b'"reason":"deleted"' in entries
    assert (await service.http.get(f"/log/queues/{line.id}/proofs/1")).status_code == 200
    assert (await service.http.get(f"/log/queues/{line.id}/checkpoint")).text != head
    assert (await line.ada.get(line.path)).status_code == 404


async def test_visitors_are_deleted_in_batches(
    line: QueueScene, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    await line.join("ann", "ben", "cal")
    await line.tick()
    await line.ada.delete(line.path)

    portions = [await forget(service) for _ in range(3)]

    assert portions == [3, 2, 0]
    assert await remembered(service) == []
