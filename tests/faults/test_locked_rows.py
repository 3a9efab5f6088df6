"""A request for a row that is locked for long is refused in time, and takes no connections from others."""

import asyncio

from holdfast.events.events import recurrence
from holdfast.events.queues.visitor_retention import forget_visitors
from holdfast.kit.operations.idempotency import Idempotency
from tests.events.queues.queue_scene import open_queue
from tests.helpers.events_service import Service
from tests.helpers.locked_rows import hold_locks, without_waiting

EVENT = "select from events where id = %(id)s for update"


async def test_a_request_for_a_row_that_stays_locked_is_refused_after_five_seconds(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    queue = await ada.create_queue()
    both = """
        with locked as materialized (select from events where id = %(event)s for update)
        select from locked, queues where queues.id = %(queue)s for update of queues
    """

    async with hold_locks(service.database.url, both, event=event["id"], queue=queue["id"]):
        async with asyncio.timeout(8):
            answers = await asyncio.gather(
                ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Another"}}),
                ada.post("/api/registrations", {"registration": {"event_id": event["id"], "email": "a@example.com"}}),
                ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"}),
            )

    assert [answer.status_code for answer in answers] == [503] * 3, [answer.text for answer in answers]
    assert {answer.json()["code"] for answer in answers} == {"service_unavailable"}
    assert {answer.json()["error"] for answer in answers} == {"Another caller is still changing the same thing."}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}


async def test_one_organizer_who_waits_for_a_locked_event_leaves_connections_to_others(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event, other = await ada.create_event(), await ben.create_event()

    async with hold_locks(service.database.url, EVENT, id=event["id"]) as operator:
        changes = [
            asyncio.create_task(ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 20 + number}}))
            for number in range(12)
        ]
        await operator.wait_for_waiters(3)
        answers = await without_waiting(
            asyncio.gather(
                *(ben.get(f"/api/events/{other['id']}") for _ in range(20)),
                *(ben.patch(f"/api/events/{other['id']}", {"event": {"title": f"Title {n}"}}) for n in range(20)),
            )
        )
        assert [answer.status_code for answer in answers] == [200] * 40

    assert [answer.status_code for answer in await asyncio.gather(*changes)] == [200] * 12


async def test_the_series_of_an_organizer_who_is_locked_waits_and_others_go_on(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    for client in (ada, ben):
        await client.create_event(recurrence_frequency="weeks", recurrence_interval=1)
    [(later,)] = await service.run_sql("select now() + interval '40 days'")

    async with hold_locks(service.database.url, "select from users where id = %(id)s for update", id=ada.id):
        assert await without_waiting(service.database.transact(lambda tx: recurrence.continue_series(tx, later))) == 1
    assert await service.database.transact(lambda tx: recurrence.continue_series(tx, later)) == 1


async def test_a_timed_deletion_skips_rows_that_others_have_locked(service: Service) -> None:
    queue = await open_queue(service)
    await queue.join("ann", "bob")
    await queue.ada.delete(queue.path)
    visitor = "select from queue_visitors where visitor_id = 'ann' for update"

    async with hold_locks(service.database.url, visitor):
        assert await without_waiting(service.database.transact(forget_visitors)) == 1
    assert await service.database.transact(forget_visitors) == 2

    ada = await service.organizer()
    for key in ("first", "second"):
        await ada.post("/api/keys", {"api_key": {"name": key}}, headers={"Idempotency-Key": key})
    answer = "select from idempotency_answers order by inserted_at limit 1 for update"
    async with hold_locks(service.database.url, answer):
        assert await without_waiting(service.database.transact(Idempotency(hours=0).forget_answers)) == 1
    assert await service.database.transact(Idempotency(hours=0).forget_answers) == 1
