"""Fields of an event that must fit each other: a map pin has two numbers, and only a moving price has bounds."""

from typing import Any

import pytest

from tests.helpers.events_service import Client, Service, event_fields

HALF = "is half of a map pin: give latitude and longitude, or none of them"
STRAY = "must be left out: only a dynamic price has bounds"


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


async def errors_of(answer: Any) -> dict[str, list[str]]:
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    return answer.json()["errors"]


@pytest.mark.parametrize(("field", "number"), [("latitude", 52.5), ("longitude", 13.4), ("latitude", 0.0)])
async def test_half_of_a_map_pin_is_refused(ada: Client, field: str, number: float) -> None:
    """Before, the event was created, with a pin that no map can show."""
    answer = await ada.post("/api/events", {"event": event_fields(**{field: number})})

    assert await errors_of(answer) == {field: [HALF]}


async def test_a_change_that_leaves_half_of_a_map_pin_is_refused(ada: Client) -> None:
    event = await ada.create_event(latitude=52.5, longitude=13.4)
    path = f"/api/events/{event['id']}"

    assert await errors_of(await ada.patch(path, {"event": {"latitude": None}})) == {"latitude": [HALF]}
    moved = await ada.patch(path, {"event": {"latitude": 1.5}})
    removed = await ada.patch(path, {"event": {"latitude": None, "longitude": None}})
    assert (moved.status_code, removed.status_code) == (200, 200)
    assert await errors_of(await ada.patch(path, {"event": {"longitude": 2.5}})) == {"longitude": [HALF]}


@pytest.mark.parametrize(("mode", "price"), [("fixed", 700), ("free", 0)])
@pytest.mark.parametrize("field", ["min_price", "max_price"])
async def test_a_fixed_or_free_price_with_bounds_is_refused(ada: Client, mode: str, price: int, field: str) -> None:
    """Before, the bounds were stored and meant nothing."""
    terms = {"pricing_mode": mode, "price": price}
    answer = await ada.post("/api/events", {"event": event_fields(**{**terms, field: 500})})
    event = await ada.create_event(**terms)
    changed = await ada.patch(f"/api/events/{event['id']}", {"event": {field: 500}})

    assert await errors_of(answer) == {field: [STRAY]}
    assert await errors_of(changed) == {field: [STRAY]}


async def test_an_event_in_the_past_and_a_change_of_a_cancelled_event_are_accepted(ada: Client) -> None:
    past = await ada.create_event(datetime="2020-01-01T12:00:00Z")
    event = await ada.create_event()
    await ada.delete(f"/api/events/{event['id']}")

    changed = await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Cancelled dance"}})

    assert past["status"] == "expired"
    assert changed.status_code == 200
    assert (changed.json()["data"]["title"], changed.json()["data"]["status"]) == ("Cancelled dance", "cancelled")
