"""Processes that release at the same time release each visitor once, and in time."""

import asyncio

from holdfast.events.queues import release
from tests.events.queues.queue_scene import log, open_queue
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually


async def test_a_queue_that_others_hold_is_waited_for_and_keeps_no_other_waiting(service: Service) -> None:
    busy, free = await open_queue(service), await open_queue(service)
    for queue in (busy, free):
        await queue.join("ann")
        await queue.pass_time(1)

    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from queues where id = %s for update", [busy.id])
        assert await release.release_due(service.database) == 1
        assert (await free.position("ann"), await busy.length()) == (None, 1)
    assert await release.release_due(service.database) == 1


async def test_concurrent_processes_release_each_visitor_once(service: Service) -> None:
    queue = await open_queue(service, release_rate=600)
    await queue.join(*(f"visitor{number}" for number in range(60)))
    # The seconds that a round itself took, which count until the next `pass_time`.
    longest = 0.0
    for _ in range(40):
        await queue.pass_time(0.1)
        await asyncio.gather(*(release.release_due(service.database) for _ in range(4)))
        longest = max(longest, await queue.clock() - queue.now)

    released = await log(queue)
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert len(released) == 60 - await queue.length()
    assert 39 <= len(released) <= 41 + 10 * longest


async def test_concurrent_joins_and_releases_lose_no_visitor(service: Service) -> None:
    queue = await open_queue(service, release_rate=6000)
    began = asyncio.get_running_loop().time()

    async def release_meanwhile() -> None:
        while asyncio.get_running_loop().time() < began + 1.5:
            await release.release_due(service.database)

    visitors = [f"visitor{number}" for number in range(200)]
    answers, *_ = await asyncio.gather(
        asyncio.gather(*(queue.ask_to_join(visitor) for visitor in visitors)), release_meanwhile(), release_meanwhile()
    )

    released = await log(queue)
    assert {answer.status_code for answer in answers} == {202}
    assert await service.run_sql("select count(distinct ticket), max(ticket) from queue_visitors") == [(200, 200)]
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert len(released) + await queue.length() == 200
    assert 0 < len(released) <= 100 * (asyncio.get_running_loop().time() - began)


async def test_the_release_loop_releases_as_soon_as_a_visitor_is_due(service: Service) -> None:
    queue = await open_queue(service, release_rate=1200)
    async with run_in_background(release.LOOP.run(service.database)):
        await queue.join("ann", "ben", "cal")

        async def nobody_waits() -> bool:
            return await queue.length() == 0

        await eventually(nobody_waits)
    released = await log(queue)
    assert [ticket for ticket, _ in released] == [1, 2, 3]
    ((began,),) = await service.run_sql("select extract(epoch from min(joined_at))::float8 from queue_visitors")
    assert [at >= began + 0.05 * ticket for ticket, at in released] == [True] * 3
