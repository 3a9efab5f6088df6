"""A queue can be read and changed by its organizer and by admins, and by no other organizer."""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Queue, failing_fields, objects_on_page, one, page, refusal
from tests.contract.steps import join
from tests.helpers.events_service import Service, queue_fields


@requirement("queues.create.organizer", "auth.admin-organizer-id")
async def test_an_admin_names_the_organizer_of_a_queue(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()

    queue = await admin.create_queue(organizer_id=ada.id)

    assert queue["organizer_id"] == ada.id
    for organizer in ({}, {"organizer_id": None}, {"organizer_id": 4711}):
        body = {"queue_event": queue_fields(**organizer)}
        assert failing_fields(await admin.post("/api/queues", body)) == {"organizer_id"}


@requirement("queues.create.organizer", "auth.organizer-scope")
async def test_an_organizer_creates_queues_of_its_own_only(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()

    assert (await ada.create_queue(organizer_id=ada.id))["organizer_id"] == ada.id
    answer = await eve.post("/api/queues", {"queue_event": queue_fields(organizer_id=ada.id)})
    assert refusal(answer) == (403, "forbidden")


@requirement("queues.list")
async def test_an_organizer_lists_its_own_queues_and_an_admin_all(new_service: Service) -> None:
    ada, eve = await new_service.organizer(), await new_service.organizer()
    mine = [await ada.create_queue(title=f"Sale {number}") for number in range(3)]
    other = await eve.create_queue()

    assert [queue.id for queue in objects_on_page(await ada.get("/api/queues"), Queue)] == [
        queue["id"] for queue in mine
    ]
    everything = objects_on_page(await (await new_service.admin()).get("/api/queues"), Queue)
    assert [queue.id for queue in everything] == [*(queue["id"] for queue in mine), other["id"]]
    [second], where = page(await ada.get("/api/queues?offset=1&limit=1"), Queue)
    assert (second.id, where.count, where.offset, where.limit, where.has_more) == (mine[1]["id"], 1, 1, 1, True)


@requirement("queues.update")
async def test_a_queue_stays_with_its_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    queue = await ada.create_queue()

    for client in (ada, admin):
        body = {"queue_event": {**queue, "organizer_id": 4711}}
        answer = await client.patch(f"/api/queues/{queue['id']}", body)
        assert (answer.status_code, [*answer.json()["errors"]]) == (422, ["organizer_id"])
        assert (await client.get(f"/api/queues/{queue['id']}")).json()["data"] == queue


@requirement("auth.organizer-scope")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"queue_event": {"title": "Mine now"}}),
        ("PATCH", "", {"queue_event": {"active": False}}),
        ("DELETE", "", None),
        ("POST", "/join", {"visitor_id": "eve"}),
        ("POST", "/join", {"visitor_id": "ann"}),
        ("GET", "/status/ann", None),
        ("GET", "/status/eve", None),
    ],
)
async def test_a_queue_of_another_organizer_cannot_be_read_or_changed(
    service: Service, method: str, path: str, body: Any
) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    queue = await ada.create_queue()
    await join(ada, queue, "ann")
    before = (await ada.get("/api/queues")).json()

    response = await eve.request(method, f"/api/queues/{queue['id']}{path}", body)

    assert refusal(response) == (403, "forbidden")
    assert (await ada.get("/api/queues")).json() == before
    assert (await eve.get("/api/queues")).json()["data"] == []


@requirement("auth.admin")
async def test_an_admin_works_with_queues_of_any_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    queue = await ada.create_queue()
    path = f"/api/queues/{queue['id']}"

    poll = await join(admin, queue, "ann")
    assert (await admin.get(poll)).json()["position"] == 1
    assert one(await admin.patch(path, {"queue_event": {"title": "Winter sale"}}), Queue).queue_length == 1
    assert (await admin.delete(path)).status_code == 204
