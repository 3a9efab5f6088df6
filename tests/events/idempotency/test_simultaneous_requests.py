"""Requests with the same key that come at once, in one process or in several, are served once."""

import asyncio
import contextlib

from holdfast.events.settings import Settings
from holdfast.kit.operations.operation import Operation
from tests.events.idempotency.idempotency_scene import CREATE_REGISTRATION, IdempotencyScene, of_each
from tests.helpers.events_service import Client, eventually, running_events


@of_each
async def test_concurrent_requests_with_one_key_are_done_once_and_answered_alike(
    scene: IdempotencyScene, operation: Operation
) -> None:
    before = await scene.count()

    answers = await asyncio.gather(*(scene.send(operation, "K") for _ in range(20)))

    assert {(answer.status_code, answer.content) for answer in answers} == {(operation.status, answers[0].content)}
    assert sum(await scene.count()) - sum(before) == 1


@of_each
async def test_concurrent_requests_in_four_processes_are_done_once(
    scene: IdempotencyScene, settings: Settings, operation: Operation
) -> None:
    before = await scene.count()
    async with contextlib.AsyncExitStack() as stack:
        others = [await stack.enter_async_context(running_events(settings)) for _ in range(3)]
        clients = [Client(process.http, scene.ada.key) for process in others]
        answers = await asyncio.gather(
            *(scene.send(operation, f"K{number % 7}", client) for number in range(21) for client in clients)
        )

    assert {answer.status_code for answer in answers} == {operation.status}
    # The same person is registered once, the same photo shown once, the same visitor waits once, under whatever key.
    created = 1 if operation.name in {"create_registration", "add_event_photo", "join_queue"} else 7
    assert sum(await scene.count()) - sum(before) == created
    assert len({answer.content for answer in answers}) == created


async def test_the_same_request_in_two_processes_is_done_once_though_one_loses_its_connection(
    scene: IdempotencyScene, settings: Settings
) -> None:
    """One process has done the work, and loses its connection before it commits. The other waits for it."""
    async with running_events(settings) as other:
        async with scene.service.database.transaction() as tx:
            # Nobody else gets past the list of organizers now.
            await tx.value("select 1 from users for update")
            first = asyncio.create_task(scene.create("K", Client(other.http, scene.ada.key)))
            await eventually(lambda: scene.service.run_sql("select from pg_locks where not granted"))
            second = asyncio.create_task(scene.create("K"))
            await eventually(
                lambda: scene.service.run_sql("select from pg_locks where locktype = 'advisory' and not granted")
            )
            await tx.value(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and wait_event <> 'advisory'
                """
            )
        answers = [await first, await second]

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert (await scene.count())[0] == 2


async def test_registrations_with_and_without_keys_share_the_service_and_each_gets_its_own_answer(
    scene: IdempotencyScene,
) -> None:
    """New ones, repeated ones, misused keys and refusals, all at once."""
    await scene.send(CREATE_REGISTRATION, "old", email="old@example.com")
    fresh = [scene.send(CREATE_REGISTRATION, f"new{n}", email=f"n{n}@example.com") for n in range(10)]
    twice = [scene.send(CREATE_REGISTRATION, "new0", email="n0@example.com") for _ in range(5)]
    old = [scene.send(CREATE_REGISTRATION, "old", email="old@example.com") for _ in range(5)]
    misused = [scene.send(CREATE_REGISTRATION, "old", email="new@example.com") for _ in range(5)]
    nowhere = [scene.send(CREATE_REGISTRATION, f"lost{n}", event_id=4711) for n in range(5)]
    without = [scene.ada.register(scene.event_id, email=f"w{n}@example.com") for n in range(10)]

    answers = await asyncio.gather(*fresh, *twice, *old, *misused, *nowhere)
    polls = await asyncio.gather(*without)

    statuses = [answer.status_code for answer in answers]
    assert statuses == [202] * 20 + [422] * 5 + [404] * 5
    assert len({answer.content for answer in answers[:10]}) == 10
    assert {answer.content for answer in answers[10:15]} == {answers[0].content}
    assert len({answer.content for answer in answers[15:20]}) == 1
    assert {answer.json()["code"] for answer in answers[20:25]} == {"idempotency_key_reused"}
    assert len(set(polls)) == 10
    assert (await scene.count())[2] == 21
    assert await scene.count_stored_answers() == 11
