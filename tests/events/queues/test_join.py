"""POST /api/queues/{id}/join: a place, once, in order of arrival."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.events.queues import operations
from holdfast.events.queues.model import JoinQueue
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import access_token
from holdfast.kit.operations.operation import Batch, Call
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service, eventually, running_events


async def test_a_visitor_who_joins_waits_at_the_end_of_the_line(queue: QueueScene) -> None:
    await queue.join("ann", "ben", "cal")

    assert [await queue.status(visitor) for visitor in ("ann", "ben", "cal")] == [
        {"status": "waiting", "position": number, "estimated_wait_seconds": number} for number in (1, 2, 3)
    ]
    assert await queue.length() == 3


async def test_a_visitor_who_joins_again_keeps_the_place(queue: QueueScene) -> None:
    first = await queue.join("ann", "ben")

    assert await queue.join("ann", "ben", "ann") == [*first, first[0]]
    assert (await queue.position("ann"), await queue.position("ben"), await queue.length()) == (1, 2, 2)


async def test_a_thousand_duplicates_at_once_are_one_visitor(queue: QueueScene) -> None:
    answers = await asyncio.gather(*(queue.ask_to_join("ann") for _ in range(1000)))

    assert {answer.status_code for answer in answers} == {202}
    assert await queue.length() == 1
    assert await queue.position("ann") == 1


async def test_a_storm_of_joins_in_two_processes_gives_every_visitor_one_ticket_and_leaves_no_gap(
    queue: QueueScene, service: Service
) -> None:
    visitors = [f"visitor{number}" for number in range(300)]
    async with running_events(service.database.resources.settings) as other:
        twin = QueueScene(other, queue.ada, queue.id)
        twin.ada = type(queue.ada)(other.http, queue.ada.key)
        answers = await asyncio.gather(
            *(process.ask_to_join(visitor) for visitor in visitors for process in (queue, twin, queue, twin))
        )

    assert {answer.status_code for answer in answers} == {202}
    tickets = await service.run_sql("select ticket from queue_visitors order by ticket")
    assert tickets == [(number,) for number in range(1, 301)]
    assert await queue.length() == 300


async def test_a_visitor_who_joined_at_one_process_is_known_to_others_at_once(
    queue: QueueScene, service: Service
) -> None:
    async with running_events(service.database.resources.settings) as other:
        twin = type(queue.ada)(other.http, queue.ada.key)
        for visitor in ("ann", "ben", "cal"):
            [poll] = await queue.join(visitor)
            assert (await twin.get(poll)).json()["status"] == "waiting"


async def test_a_visitor_whom_another_process_is_storing_gets_that_ticket(queue: QueueScene, service: Service) -> None:
    call = Call(access_token(queue.ada.id), JoinQueue(queue_id=queue.id, visitor_id="ann"))

    async with service.database.transaction() as tx:
        await operations.join(tx, Batch(0, [call]))
        meanwhile = asyncio.create_task(service.database.transact(lambda tx: operations.join(tx, Batch(0, [call]))))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
    await meanwhile

    assert await queue.length() == 1


async def test_a_join_that_is_cut_off_before_its_commit_has_never_been(queue: QueueScene, service: Service) -> None:
    call = Call(access_token(queue.ada.id), JoinQueue(queue_id=queue.id, visitor_id="ann"))

    async def cut_off(tx: Tx) -> None:
        await operations.join(tx, Batch(0, [call]))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await service.database.transact(cut_off)

    assert await queue.status("ann") == {"status": "not_in_queue"}
    await queue.join("ben")
    assert (await queue.position("ben"), await queue.length()) == (1, 1)


async def test_a_full_queue_refuses_new_visitors_and_keeps_the_waiting_ones(service: Service) -> None:
    queue = await open_queue(service, max_queue_size=2, release_rate=30)
    await queue.join("ann", "ben")

    refusal = await queue.ask_to_join("cal")

    assert (refusal.status_code, refusal.json()["code"]) == (503, "queue_full")
    assert refusal.json()["retry_after"] == 2
    assert refusal.headers["retry-after"] == "2"
    assert await queue.status("cal") == {"status": "not_in_queue"}
    await queue.join("ben")
    assert await queue.tick(2) == 1
    await queue.join("cal")
    assert await queue.position("cal") == 2


async def test_concurrent_visitors_fill_a_queue_exactly_to_its_size(service: Service) -> None:
    queue = await open_queue(service, max_queue_size=10)

    answers = await asyncio.gather(*(queue.ask_to_join(f"visitor{number % 40}") for number in range(80)))

    accepted = [number % 40 for number, answer in enumerate(answers) if answer.status_code == 202]
    assert len(set(accepted)) == 10
    assert len(accepted) == 20
    assert {answer.json().get("code") for answer in answers} == {None, "queue_full"}
    assert await queue.length() == 10


async def test_a_smaller_maximum_size_removes_no_waiting_visitor(service: Service) -> None:
    queue = await open_queue(service)
    await queue.join("ann", "ben", "cal")
    await queue.change(max_queue_size=1)

    assert await queue.position("cal") == 3
    assert (await queue.ask_to_join("dan")).json()["code"] == "queue_full"
    await queue.change(max_queue_size=None)
    await queue.join("dan")


async def test_a_paused_queue_takes_no_new_visitors_and_keeps_the_waiting_ones(queue: QueueScene) -> None:
    await queue.join("ann")
    await queue.change(active=False)

    refusal = await queue.ask_to_join("ben")

    assert (refusal.status_code, refusal.json()["code"], refusal.headers["retry-after"]) == (
        503,
        "queue_inactive",
        "60",
    )
    await queue.join("ann")
    assert await queue.position("ann") == 1


async def test_an_ended_queue_takes_no_visitors_and_has_none_waiting(queue: QueueScene) -> None:
    await queue.join("ann")
    await queue.change(ends_at=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())

    for visitor in ("ann", "ben"):
        refusal = await queue.ask_to_join(visitor)
        assert (refusal.status_code, refusal.json()["code"]) == (422, "queue_ended")
        assert await queue.status(visitor) == {"status": "not_in_queue"}
    assert await queue.length() == 0


async def test_a_queue_that_is_prolonged_after_its_end_still_knows_who_waited(queue: QueueScene) -> None:
    await queue.join("ann", "ben")
    await queue.change(ends_at=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())
    await queue.change(ends_at=None)

    assert (await queue.position("ann"), await queue.position("ben")) == (1, 2)


async def test_visitors_line_up_before_a_queue_starts(service: Service) -> None:
    queue = await open_queue(service, starts_at=(datetime.now(UTC) + timedelta(seconds=100)).isoformat())
    await queue.join("ann", "ben")

    status = await queue.status("ben")
    assert status["position"] == 2
    assert status["estimated_wait_seconds"] in (101, 102)


async def test_a_released_visitor_who_joins_again_keeps_the_turn(queue: QueueScene) -> None:
    await queue.join("ann", "ben")
    await queue.tick()
    token = await queue.token("ann")

    await queue.join("ann")

    assert await queue.token("ann") == token
    assert await queue.length() == 1


async def test_a_visitor_who_missed_the_turn_joins_again_at_the_end(queue: QueueScene) -> None:
    await queue.join("ann", "ben", "cal")
    await queue.tick()
    await queue.pass_time(10 * 60)
    assert await queue.status("ann") == {"status": "not_in_queue"}

    await queue.join("ann")

    assert await queue.position("ann") == 3


async def test_a_visitor_who_used_the_token_joins_again_at_the_end(queue: QueueScene) -> None:
    await queue.join("ann", "ben")
    await queue.tick()
    assert (await queue.verify(await queue.token("ann"), consume=True)).status_code == 200
    assert await queue.status("ann") == {"status": "not_in_queue"}

    await queue.join("ann")

    assert await queue.position("ann") == 2


async def test_the_database_refuses_a_repeated_ticket_and_serving_beyond_the_tickets(
    queue: QueueScene, service: Service
) -> None:
    await queue.join("ann")

    with pytest.raises(Exception, match="a_ticket_belongs_to_one_visitor"):
        await service.run_sql(
            "insert into queue_visitors (queue_id, visitor_id, ticket) select id, 'ben', 1 from queues"
        )
    with pytest.raises(Exception, match="serves_only_tickets_handed_out"):
        await service.run_sql("update queues set serving = 2")
