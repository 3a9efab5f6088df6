"""A queue with an event stands before that event, and keeps it."""

import asyncio
from typing import Any

import pytest

from holdfast.events.events import recurrence
from tests.events.queues.guarded import GuestBrowser, guard
from tests.helpers.event_visitor import page_state
from tests.helpers.events_service import Client, Service, event_fields, queue_fields


async def make(client: Client, **fields: Any) -> tuple[int, dict[str, Any]]:
    answer = await client.post("/api/queues", {"queue_event": {**queue_fields(target_url=None), **fields}})
    return answer.status_code, answer.json()


async def test_the_queue_and_the_event_name_each_other(service: Service) -> None:
    guarded = await guard(service)
    queue = (await guarded.ada.get(guarded.queue.path)).json()["data"]

    assert queue["event_id"] == guarded.id
    assert queue["target_url"] == f"http://events.test/events/{guarded.id}/released"
    assert (await guarded.event())["waiting_room_url"] == queue["waiting_room_url"]


async def test_a_queue_leads_to_an_event_or_to_an_address(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    status, none = await make(ada)
    assert (status, none["errors"]) == (422, {"target_url": ["is required"]})
    status, both = await make(ada, event_id=event["id"], target_url="https://shop.example/")
    assert (status, list(both["errors"])) == (422, ["target_url"])


async def test_an_event_that_cannot_have_a_room_is_refused_with_the_reason(service: Service) -> None:
    guarded = await guard(service)
    ada, ben = guarded.ada, await service.organizer("Ben Events")
    cancelled = await ada.create_event()
    await ada.delete(f"/api/events/{cancelled['id']}")

    for client, event_id, says in (
        (ada, 999_999, "you have no event with this id"),
        (ben, guarded.id, "you have no event with this id"),
        (ada, guarded.id, "has a waiting room already; change or delete that one"),
        (ada, cancelled["id"], "is cancelled or over; choose an event that lies ahead"),
    ):
        status, answer = await make(client, event_id=event_id)
        assert (status, answer["errors"]) == (422, {"event_id": [says]})


async def test_concurrent_rooms_for_one_event_make_only_one(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answers = await asyncio.gather(*(make(ada, event_id=event["id"]) for _ in range(5)))

    assert sorted(status for status, _ in answers) == [201, 422, 422, 422, 422]


async def test_the_database_refuses_a_second_room_for_an_event(service: Service) -> None:
    guarded = await guard(service)
    other = await guard(service, guarded.ada)

    with pytest.raises(Exception, match="an_event_has_one_waiting_room"):
        await service.run_sql(
            "update queues set event_id = %(event)s where id = %(id)s", event=guarded.id, id=other.queue.id
        )


async def test_a_queue_of_an_event_can_be_sent_back_as_read_but_keeps_its_target(service: Service) -> None:
    guarded = await guard(service)
    queue = (await guarded.ada.get(guarded.queue.path)).json()["data"]

    assert (await guarded.ada.patch(guarded.queue.path, {"queue_event": queue})).status_code == 200
    answer = await guarded.ada.patch(guarded.queue.path, {"queue_event": {"target_url": "https://shop.example/"}})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["target_url"])


async def test_the_next_date_of_a_series_takes_the_room_along(service: Service) -> None:
    guarded = await guard(service, recurrence_frequency="weeks", recurrence_interval=1)
    await service.run_sql(
        "update events set datetime = now() - interval '1 minute', recurs_from = now() - interval '1 minute'"
        " where id = %(id)s",
        id=guarded.id,
    )
    await service.database.transact(recurrence.continue_series)
    await service.drop_caches()

    queue = (await guarded.ada.get(guarded.queue.path)).json()["data"]
    assert queue["event_id"] != guarded.id
    following = (await guarded.ada.get(f"/api/events/{queue['event_id']}")).json()["data"]
    assert following["waiting_room_url"] == queue["waiting_room_url"]
    # A guest with the address of the earlier date is led through to the next one.
    guest = GuestBrowser(guarded)
    await guest.look(guest.room_path)
    await guest.look(guest.room_path)
    await guarded.queue.tick()
    page = await guest.enter()
    assert page_state(page) == "open"
    assert f"/events/{queue['event_id']}/registrations" in page.text


async def test_a_room_goes_with_its_event_to_another_organizer(service: Service) -> None:
    guarded = await guard(service)
    ben, admin = await service.organizer("Ben Events"), await service.admin()
    ben_id = (await ben.create_event(**event_fields()))["organizer_id"]

    answer = await admin.patch(f"/api/events/{guarded.id}", {"event": {"organizer_id": ben_id}})

    assert answer.status_code == 200
    assert (await ben.get(guarded.queue.path)).status_code == 200
    assert (await guarded.ada.get(guarded.queue.path)).status_code == 403


async def test_a_new_room_can_be_made_after_the_first_is_deleted(service: Service) -> None:
    guarded = await guard(service)
    await guarded.ada.delete(guarded.queue.path)

    status, answer = await make(guarded.ada, event_id=guarded.id)

    assert status == 201
    assert (await guarded.event())["waiting_room_url"] == answer["data"]["waiting_room_url"]
