"""Queues: how a virtual waiting room is described, read, changed and deleted."""

from typing import Any

import msgspec
import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Queue, failing_fields, objects_on_page, one, refusal
from tests.contract.steps import join, minute
from tests.helpers.events_service import Service, queue_fields


@requirement("queues.create")
async def test_a_queue_is_created_with_defaults_for_what_is_left_out(service: Service) -> None:
    ada = await service.organizer()

    queue = one(await ada.post("/api/queues", {"queue_event": queue_fields()}), Queue, status=201)

    assert (queue.title, queue.release_rate, queue.token_ttl_minutes) == ("Spring sale", 60, 10)
    assert (queue.active, queue.queue_length, queue.organizer_id) == (True, 0, ada.id)
    assert (queue.description, queue.starts_at, queue.ends_at, queue.max_queue_size) == (None,) * 4
    assert queue.waiting_room_url == f"http://events.test/queues/{queue.id}"
    assert queue.embed_url == f"http://events.test/queues/{queue.id}/embed"


@requirement("queues.create")
async def test_a_queue_is_created_as_it_was_described(service: Service) -> None:
    described = {
        "description": "Be patient.",
        "active": False,
        "starts_at": "2031-05-01T18:00:00Z",
        "ends_at": "2031-05-01T20:00:00Z",
        "max_queue_size": 1000,
        "target_url": "http://127.0.0.1:3000/sale?a=1#top",
    }

    queue = await (await service.organizer()).create_queue(**described)

    assert {name: queue[name] for name in described} == described


@requirement("queues.create.fields")
@pytest.mark.parametrize("field", ["title", "release_rate", "target_url", "token_ttl_minutes"])
async def test_a_queue_without_a_required_field_is_refused(service: Service, field: str) -> None:
    fields = queue_fields()
    del fields[field]

    assert failing_fields(await (await service.organizer()).post("/api/queues", {"queue_event": fields})) == {field}


@requirement("queues.create.fields")
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("title", ["", " ", "x" * 301, 7, None]),
        ("description", ["x" * 10_001, 7]),
        ("active", ["yes", 1]),
        ("release_rate", [0, -1, 1.5, "60", None, 2**31]),
        ("token_ttl_minutes", [0, -1, 1.5, "10", None, 2**31]),
        ("max_queue_size", [0, -1, 1.5, "10", 2**31]),
        ("starts_at", ["tomorrow", 7, "2031-02-30T00:00:00Z"]),
        ("ends_at", ["tomorrow", 7, "2031-02-30T00:00:00Z"]),
        (
            "target_url",
            [
                *("", "shop.example", "/sale", "//shop.example", "https://", "https:///sale", "ftp://shop.example"),
                *("javascript:alert(1)", "data:text/html,x", "https://ada:pw@shop.example", "https://shop.example:0"),
                *("https://shop.example/a b", "https://shop.example/\n", "https://shop.example\\@evil.example"),
                *("https://shop.example:port", "https://[::1", "https://" + "x" * 2000, 7, None),
            ],
        ),
    ],
)
async def test_a_field_out_of_bounds_is_refused_on_creation_and_on_change(
    service: Service, subtests: pytest.Subtests, field: str, values: list[Any]
) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    for value in values:
        with subtests.test(value=str(value)[:50]):
            created = await ada.post("/api/queues", {"queue_event": queue_fields(**{field: value})})
            changed = await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": {field: value}})

            assert failing_fields(created) == {field}
            assert failing_fields(changed) == {field}
    assert objects_on_page(await ada.get("/api/queues"), Queue) == [msgspec.convert(queue, Queue)]


@requirement("queues.create")
async def test_the_scheme_of_a_target_may_be_written_in_upper_case(service: Service) -> None:
    ada = await service.organizer()

    queue = await ada.create_queue(target_url="HTTPS://shop.example/sale")
    changed = one(
        await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": {"target_url": "Http://shop.example/"}}), Queue
    )
    await join(ada, queue, "ann")
    await minute(service)
    released = (await ada.get(f"/api/queues/{queue['id']}/status/ann")).json()

    assert queue["target_url"] == "HTTPS://shop.example/sale"
    assert changed.target_url == "Http://shop.example/"
    assert released["redirect_url"].startswith("Http://shop.example/?queue_token=")


@requirement("queues.create.fields")
async def test_a_queue_must_end_after_it_starts(service: Service) -> None:
    ada = await service.organizer()
    backwards = {"starts_at": "2031-05-01T18:00:00Z", "ends_at": "2031-05-01T18:00:00Z"}
    queue = await ada.create_queue(starts_at="2031-05-01T18:00:00Z")

    assert failing_fields(await ada.post("/api/queues", {"queue_event": queue_fields(**backwards)})) == {"ends_at"}
    change = {"queue_event": {"ends_at": "2031-05-01T17:00:00Z"}}
    assert failing_fields(await ada.patch(f"/api/queues/{queue['id']}", change)) == {"ends_at"}


@requirement("queues.get")
async def test_a_queue_tells_how_many_wait_now(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    path = f"/api/queues/{queue['id']}"

    lengths = [one(await ada.get(path), Queue).queue_length]
    for visitor in ("ann", "ben"):
        await join(ada, queue, visitor)
        lengths.append(one(await ada.get(path), Queue).queue_length)
    await minute(service)
    lengths.append(one(await ada.get(path), Queue).queue_length)

    assert lengths == [0, 1, 2, 0]
    assert refusal(await ada.get("/api/queues/4711")) == (404, "not_found")


@requirement("queues.update")
async def test_an_update_of_a_queue_sets_the_given_fields_and_keeps_the_others(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue(description="Be patient.", max_queue_size=5)
    changes: list[dict[str, Any]] = [
        {"title": "Summer sale"},
        {"release_rate": 7, "token_ttl_minutes": 3},
        {"active": False},
        {"description": None, "max_queue_size": None},
        {"starts_at": "2031-05-01T18:00:00Z", "ends_at": "2031-05-02T18:00:00Z"},
        {"target_url": "https://elsewhere.example/"},
        {},
    ]
    for change in changes:
        queue |= change
        changed = one(await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": change}), Queue)
        assert changed == msgspec.convert(queue, Queue)


@requirement("queues.delete")
async def test_a_deleted_queue_is_gone_for_visitors_and_its_organizer(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    poll = await join(ada, queue, "ann")
    path = f"/api/queues/{queue['id']}"

    deleted = await ada.delete(path)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert objects_on_page(await ada.get("/api/queues"), Queue) == []
    for answer in (
        await ada.get(path),
        await ada.patch(path, {"queue_event": {"title": "Again"}}),
        await ada.delete(path),
        await ada.get(poll),
        await ada.post(f"{path}/join", {"visitor_id": "ann"}),
        await ada.post(f"{path}/join", {"visitor_id": "ben"}),
    ):
        assert refusal(answer) == (404, "not_found")
