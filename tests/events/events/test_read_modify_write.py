"""An answer can be changed and sent back; fields that cannot be changed must be unchanged."""

from typing import Any

import pytest

from tests.events.agents.samples import ANN, agent, prepare_organizer
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service


@pytest.fixture
async def ada(service: Service) -> Client:
    return await prepare_organizer(service)


PATHS = {
    "event": ("update_event", "/api/events/1", {"event_id": 1}, {"title": "Changed"}),
    "queue_event": ("update_queue", "/api/queues/1", {"queue_id": 1}, {"title": "Changed"}),
    "registration": (
        "update_registration",
        f"/api/registrations/1/{ANN}",
        {"event_id": 1, "user_id": ANN},
        {"amount_paid": 5},
    ),
}
each_of_them = pytest.mark.parametrize(
    ("wrapper", "tool", "path", "ids", "change"), [(w, *p) for w, p in PATHS.items()]
)


@each_of_them
async def test_an_answer_can_be_changed_and_sent_back(
    ada: Client, wrapper: str, tool: str, path: str, ids: dict[str, Any], change: dict[str, Any]
) -> None:
    before = (await ada.get(path)).json()["data"]

    response = await ada.patch(path, {wrapper: {**before, **change}})

    assert response.status_code == 200, response.text
    assert {name: value for name, value in response.json()["data"].items() if name not in {"embed_code", "agent"}} == {
        name: value for name, value in {**before, **change}.items() if name not in {"embed_code", "agent"}
    }


@each_of_them
async def test_a_tool_takes_back_what_it_answered_too(
    service: Service, ada: Client, wrapper: str, tool: str, path: str, ids: dict[str, Any], change: dict[str, Any]
) -> None:
    before = (await ada.get(path)).json()["data"]

    result = await agent(service, ada).call(tool, **{**before, **ids, **change})

    assert result["isError"] is False, result
    assert result["structuredContent"].items() >= change.items()


@each_of_them
async def test_an_unknown_field_of_a_change_is_refused(
    service: Service, ada: Client, wrapper: str, tool: str, path: str, ids: dict[str, Any], change: dict[str, Any]
) -> None:
    response = await ada.patch(path, {wrapper: {**change, "colour": "red"}})
    result = await agent(service, ada).call(tool, **{**ids, **change, "colour": "red"})

    assert (response.status_code, response.json()["errors"]) == (422, {"colour": ["unknown field"]})
    assert problem_of(result)["errors"] == {"colour": ["unknown field"]}


OTHERS: dict[str, list[tuple[str, Any]]] = {
    "event": [
        ("id", 7),
        ("status", "cancelled"),
        ("cancelled_at", "2031-01-01T00:00:00Z"),
        ("public_url", "https://other.example/"),
        ("image_urls", ["https://other.example/a.jpg"]),
    ],
    "queue_event": [("id", 7), ("organizer_id", 99), ("embed_url", "https://other.example/")],
    "registration": [("id", "2-abcdefgh"), ("received_at", "2031-01-01T00:00:00Z"), ("email", "eve@example.com")],
}


@each_of_them
async def test_a_changed_readonly_field_is_refused_and_nothing_is_changed(
    service: Service, ada: Client, wrapper: str, tool: str, path: str, ids: dict[str, Any], change: dict[str, Any]
) -> None:
    before = (await ada.get(path)).json()["data"]
    for name, value in OTHERS[wrapper]:
        response = await ada.patch(path, {wrapper: {**before, **change, name: value}})
        assert (response.status_code, [*response.json()["errors"]]) == (422, [name])
        if name not in ids:
            result = await agent(service, ada).call(tool, **{**before, **ids, **change, name: value})
            assert [*problem_of(result)["errors"]] == [name]
    assert (await ada.get(path)).json()["data"] == before


async def test_a_count_that_has_changed_since_it_was_read_may_be_sent_back(service: Service, ada: Client) -> None:
    event = await ada.create_event(pricing_mode="dynamic", price=1000, min_price=500, max_price=2000)
    path = f"/api/events/{event['id']}"
    read = (await ada.get(path)).json()["data"]
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    answer = await ada.patch(path, {"event": {**read, "title": "Another title"}})

    assert answer.status_code == 200, answer.text
    assert (answer.json()["data"]["title"], answer.json()["data"]["registration_count"]) == ("Another title", 1)


@each_of_them
async def test_the_same_moment_may_be_written_in_another_way(
    service: Service, ada: Client, wrapper: str, tool: str, path: str, ids: dict[str, Any], change: dict[str, Any]
) -> None:
    before = (await ada.get(path)).json()["data"]
    numbers = {name: float(value) for name, value in before.items() if type(value) is int and name not in ids}

    response = await ada.patch(path, {wrapper: {**before, **numbers, **change}})
    assert response.status_code == 200, response.text


async def test_a_change_with_the_id_of_another_event_is_refused(ada: Client) -> None:
    response = await ada.patch(f"/api/registrations/1/{ANN}", {"registration": {"event_id": 2, "amount_paid": 5}})

    assert (response.status_code, [*response.json()["errors"]]) == (422, ["event_id"])


async def test_a_readonly_field_of_a_new_event_is_refused(ada: Client) -> None:
    event = (await ada.get("/api/events/1")).json()["data"]

    response = await ada.post("/api/events", {"event": event})

    assert (response.status_code, response.json()["errors"]["registration_count"]) == (422, ["unknown field"])
