"""Events change, fill up, pass and are cancelled."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Registration, failing_fields, objects_on_page, one, refusal
from tests.contract.steps import register, yesterday
from tests.helpers.events_service import Service


@requirement("events.update", "events.fields")
@pytest.mark.parametrize(
    "change",
    [
        {"body": "Bring two pencils."},
        {"datetime": "2032-01-01T09:00:00Z"},
        {"capacity": 11},
        {"capacity": 1},
        {"waitinglist_capacity": 4},
        {"recurrence_frequency": "months", "recurrence_interval": 3},
        {"address": "Main Street 1"},
        {"location_name": "Studio"},
        {"latitude": 1.5, "longitude": -1.5},
        {"location_name": None, "address": None},
        {"min_price": None, "max_price": None},
        {},
    ],
)
async def test_a_change_touches_the_fields_given_and_no_others(service: Service, change: dict[str, Any]) -> None:
    ada = await service.organizer()
    before = await ada.create_event(pricing_mode="fixed", price=5, location_name="Attic", address="Side Street 2")

    response = await ada.patch(f"/api/events/{before['id']}", {"event": change})

    one(response, Event)
    assert response.json()["data"] == before | change
    assert (await ada.get(f"/api/events/{before['id']}")).json()["data"] == before | change


@requirement("events.update")
async def test_a_new_title_reaches_the_embed_code(service: Service) -> None:
    ada = await service.organizer()
    before = await ada.create_event(title="Life drawing")

    after = one(await ada.patch(f"/api/events/{before['id']}", {"event": {"title": "Portraits"}}), Event)

    assert after.title == "Portraits"
    assert "Life drawing" not in after.embed_code
    assert (after.body, after.public_url) == (before["body"], before["public_url"])


@requirement("events.update")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", None),
        ("body", None),
        ("datetime", "soon"),
        ("capacity", 0),
        ("waitinglist_capacity", -1),
        ("recurrence_frequency", "hours"),
        ("recurrence_interval", -1),
        ("latitude", 91),
        ("price", 0),
        ("colour", "red"),
    ],
)
async def test_a_change_that_is_not_acceptable_changes_nothing(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    before = await ada.create_event(pricing_mode="fixed", price=5)

    response = await ada.patch(f"/api/events/{before['id']}", {"event": {"body": "Changed", name: value}})

    assert failing_fields(response) == {name}
    assert (await ada.get(f"/api/events/{before['id']}")).json()["data"] == before


@requirement("events.update")
@pytest.mark.parametrize(
    ("name", "value"), [("status", "full"), ("id", 4711), ("public_url", "https://other.example/")]
)
async def test_a_readonly_field_of_an_event_is_accepted_only_unchanged(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    before = await ada.create_event()

    path = f"/api/events/{before['id']}"
    assert failing_fields(await ada.patch(path, {"event": {**before, "body": "Changed", name: value}})) == {name}
    assert (await ada.get(path)).json()["data"] == before

    response = await ada.patch(path, {"event": {**before, "body": "Changed"}})
    assert response.json()["data"] == {**before, "body": "Changed"}


@requirement("events.update")
async def test_capacity_cannot_fall_below_the_seats_taken(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=3)
    await register(service, ada, event, "ann", "bob")

    below = await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 1}})
    exact = await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})

    assert failing_fields(below) == {"capacity"}
    assert one(exact, Event).status == "full"


@requirement("events.update.immutable")
@pytest.mark.parametrize("change", [{"pricing_mode": "dynamic"}, {"pricing_mode": "free"}, {"currency": "GBP"}])
async def test_pricing_mode_and_currency_never_change(service: Service, change: dict[str, str]) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=500, currency="EUR")
    path = f"/api/events/{event['id']}"

    response = await ada.patch(path, {"event": change})

    assert change.keys() <= failing_fields(response)
    assert (await ada.get(path)).json()["data"] == event
    assert (await ada.patch(path, {"event": {"currency": "EUR", "pricing_mode": "fixed"}})).status_code == 200


@requirement("events.update.organizer", "auth.admin")
async def test_an_admin_hands_an_event_to_another_organizer(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    response = await (await service.admin()).patch(f"/api/events/{event['id']}", {"event": {"organizer_id": ben.id}})

    assert one(response, Event).organizer_id == ben.id
    assert refusal(await ada.get(f"/api/events/{event['id']}")) == (403, "forbidden")
    assert [event.id for event in objects_on_page(await ben.get("/api/events"), Event)] == [event["id"]]


@requirement("events.update.organizer", "auth.organizer-scope")
async def test_an_organizer_cannot_give_its_event_away(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"organizer_id": ben.id}})

    assert refusal(response) == (403, "forbidden")
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).organizer_id == ada.id
    assert objects_on_page(await ben.get("/api/events"), Event) == []


@requirement("events.update.organizer")
async def test_an_event_cannot_be_handed_over_without_an_organizer(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await (await service.admin()).patch(f"/api/events/{event['id']}", {"event": {"organizer_id": 4711}})

    assert failing_fields(response) == {"organizer_id"}
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).organizer_id == ada.id


@requirement("events.cancel", "events.fields")
async def test_a_cancelled_event_has_the_time_of_cancellation_and_keeps_its_fields(service: Service) -> None:
    ada = await service.organizer()
    before = await ada.create_event()
    agent = before["agent"] | {"hosted_registration_ready": False}

    response = await ada.delete(f"/api/events/{before['id']}")

    event = one(response, Event)
    assert event.cancelled_at is not None
    assert abs(event.cancelled_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert response.json()["data"] == before | {
        "status": "cancelled",
        "cancelled_at": response.json()["data"]["cancelled_at"],
        "agent": agent,
    }


@requirement("events.cancel")
async def test_a_cancelled_event_keeps_its_data(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")

    cancelled = (await ada.delete(f"/api/events/{event['id']}")).json()

    assert (await ada.get(f"/api/events/{event['id']}")).json() == cancelled
    assert objects_on_page(await ada.get("/api/events"), Event)[0].registration_count == 1
    assert one(await ada.get(poll), Registration).status == "registered"
    assert len((await ada.get(f"/api/events/{event['id']}/price_history")).json()["data"]) == 1


@requirement("events.cancel")
async def test_cancelling_twice_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    first = await ada.delete(f"/api/events/{event['id']}")
    second = await ada.delete(f"/api/events/{event['id']}")

    assert (second.status_code, second.json()) == (200, first.json())


@requirement("events.status")
async def test_an_event_ahead_with_free_seats_is_active(service: Service) -> None:
    assert (await (await service.organizer()).create_event())["status"] == "active"


@requirement("events.status")
async def test_an_event_without_free_seats_is_full_until_one_is_freed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2)
    path = f"/api/events/{event['id']}"

    await register(service, ada, event, "ann")
    assert one(await ada.get(path), Event).status == "active"
    [poll] = await register(service, ada, event, "bob")
    assert one(await ada.get(path), Event).status == "full"

    await ada.delete(poll)
    assert one(await ada.get(path), Event).status == "active"


@requirement("events.status")
async def test_an_event_whose_time_has_passed_is_expired(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await register(service, ada, event, "ann")

    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": yesterday()}})

    assert one(response, Event).status == "expired"


@requirement("events.status", "events.cancel")
async def test_a_cancelled_event_is_cancelled_whatever_else_it_is(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await register(service, ada, event, "ann")
    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": yesterday()}})

    assert one(await ada.delete(f"/api/events/{event['id']}"), Event).status == "cancelled"
