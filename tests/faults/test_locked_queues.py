"""While a queue or a visitor is locked, only requests that need it wait."""

import asyncio

from holdfast.events.queues import release
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.locked_rows import hold_locks, without_waiting

QUEUE = "select from queues where id = %(id)s for no key update"
VISITOR = "select from queue_visitors where visitor_id = %(visitor)s for update"


async def test_a_visitor_who_joins_a_locked_queue_waits_and_others_join_other_queues(service: Service) -> None:
    locked, free = await open_queue(service), await open_queue(service)

    async with hold_locks(service.database.url, QUEUE, id=locked.id) as operator:
        waiting = [asyncio.create_task(locked.ask_to_join("ann"))]
        await operator.wait_for_waiters()
        waiting += [asyncio.create_task(locked.ask_to_join(name)) for name in ("bob", "cal")]
        await without_waiting(free.join(*(f"n{number}" for number in range(20))))
        assert not any(task.done() for task in waiting)

    assert [(await task).status_code for task in waiting] == [202] * 3
    assert [await locked.position(name) for name in ("ann", "bob", "cal")] == [1, 2, 3]


async def test_a_visitor_of_a_locked_queue_is_answered_at_once(service: Service) -> None:
    queue = await open_queue(service)
    await queue.join("ann")

    async with hold_locks(service.database.url, QUEUE, id=queue.id):
        assert (await without_waiting(queue.ask_to_join("ann"))).status_code == 202
        assert await without_waiting(queue.position("ann")) == 1


async def test_concurrent_joins_of_many_processes_store_every_visitor(service: Service) -> None:
    queue = await open_queue(service)
    visitors = [f"n{number}" for number in range(100)]

    async def keep_locking() -> None:
        while await queue.length() < len(visitors):
            async with hold_locks(service.database.url, QUEUE, id=queue.id):
                await asyncio.sleep(0)

    answers, _ = await asyncio.gather(
        asyncio.gather(*(queue.ask_to_join(visitor) for visitor in visitors)), keep_locking()
    )

    assert {answer.status_code for answer in answers} == {202}
    assert {await queue.position(visitor) for visitor in visitors} == {*range(1, 101)}


async def test_a_locked_queue_releases_as_soon_as_it_is_free_and_others_meanwhile(service: Service) -> None:
    locked, free = await open_queue(service, release_rate=1200), await open_queue(service, release_rate=1200)
    await locked.join("ann", "bob")

    async def is_empty(queue: QueueScene) -> bool:
        return await queue.length() == 0

    async with run_in_background(release.LOOP.run(service.database)):
        async with hold_locks(service.database.url, QUEUE, id=locked.id) as operator:
            await operator.wait_for_waiters()
            await free.join("cal", "dan")
            await eventually(lambda: is_empty(free), seconds=2)
            assert await locked.length() >= 1

        await eventually(lambda: is_empty(locked), seconds=2)


async def test_a_visitor_whose_row_is_locked_waits_for_the_token_and_others_get_theirs(service: Service) -> None:
    queue = await open_queue(service)
    await queue.join("ann", "bob")
    await queue.tick(times=2)

    async with hold_locks(service.database.url, VISITOR, visitor="ann") as operator:
        ann = asyncio.create_task(queue.token("ann"))
        await operator.wait_for_waiters()
        assert await without_waiting(queue.token("bob"))
        assert not ann.done()

    assert (await queue.verify(await ann)).status_code == 200


async def test_a_visitor_whose_row_is_locked_waits_to_join_again_and_others_join(service: Service) -> None:
    queue = await open_queue(service, token_ttl_minutes=1)
    await queue.join("ann")
    await queue.tick()
    await queue.pass_time(3600)

    async with hold_locks(service.database.url, VISITOR, visitor="ann") as operator:
        ann = asyncio.create_task(queue.ask_to_join("ann"))
        await operator.wait_for_waiters()
        await without_waiting(queue.join("bob"))
        assert not ann.done()

    assert (await ann).status_code == 202
    assert [await queue.position(name) for name in ("bob", "ann")] == [1, 2]
