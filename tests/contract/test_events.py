"""Events are created, listed and read."""

from datetime import timedelta
from typing import Any

import pytest

from holdfast.events.events.recurrence import continue_series
from tests.contract.requirements import requirement
from tests.contract.shapes import Event, failing_fields, objects_on_page, one
from tests.contract.steps import refused_event, register, yesterday
from tests.helpers.events_service import Service, event_fields


@requirement("events.create", "events.fields")
async def test_a_new_event_comes_back_as_it_was_sent(service: Service) -> None:
    ada = await service.organizer()
    fields = {
        "title": "Life drawing",
        "body": "# Bring a pencil\nhttps://example.com/studio",
        "datetime": "2031-05-01T18:30:00Z",
        "price": 2500,
        "pricing_mode": "fixed",
        "capacity": 12,
        "waitinglist_capacity": 3,
        "recurrence_frequency": "weeks",
        "recurrence_interval": 2,
    }

    response = await ada.post("/api/events", {"event": fields})

    event = one(response, Event, status=201)
    assert response.json()["data"] == response.json()["data"] | fields
    assert (event.status, event.organizer_id, event.registration_count) == ("active", ada.id, 0)
    assert event.cancelled_at is None


@requirement("events.create", "events.get")
async def test_a_new_event_can_be_read_at_once(service: Service) -> None:
    ada = await service.organizer()

    event = await ada.create_event()

    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"] == event


@requirement("events.create.organizer")
async def test_the_event_of_an_organizer_key_is_its_own(service: Service) -> None:
    ada = await service.organizer()

    assert (await ada.create_event())["organizer_id"] == ada.id
    assert (await ada.create_event(organizer_id=ada.id))["organizer_id"] == ada.id


@requirement("events.create.required", "errors.validation")
@pytest.mark.parametrize("name", ["title", "body", "datetime", "price", "capacity"])
async def test_an_event_without_a_required_field_is_refused(service: Service, name: str) -> None:
    ada = await service.organizer()
    fields = event_fields()
    del fields[name]

    assert failing_fields(await ada.post("/api/events", {"event": fields})) == {name}
    assert objects_on_page(await ada.get("/api/events"), Event) == []


@requirement("events.create.required")
async def test_all_missing_fields_are_named_at_once(service: Service) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/events", {"event": {}})

    assert failing_fields(response) == {"title", "body", "datetime", "price", "capacity"}


@requirement("events.create.required")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("title", value) for value in (None, 1, ["Life drawing"])],
        *[("body", value) for value in (None, 1, {"text": "Bring a pencil"})],
        *[("datetime", value) for value in (None, "", "tomorrow", "2031-02-30T10:00:00Z", "2031-05-01", 1935424800)],
        *[("price", value) for value in (None, "0", 0.5, True, -1)],
        *[("capacity", value) for value in (None, "10", 1.5, True)],
    ],
)
async def test_a_required_field_of_another_type_is_refused(service: Service, name: str, value: Any) -> None:
    assert await refused_event(await service.organizer(), **{name: value}) == {name}


@requirement("events.create")
async def test_a_field_that_events_do_not_have_is_refused(service: Service) -> None:
    assert await refused_event(await service.organizer(), capacty=10) == {"capacty"}


@requirement("events.create.defaults")
async def test_an_event_of_only_required_fields_gets_the_defaults(service: Service) -> None:
    ada = await service.organizer()
    required = {"title": "T", "body": "B", "datetime": "2031-05-01T10:00:00Z", "price": 1, "capacity": 1}

    event = one(await ada.post("/api/events", {"event": required}), Event, status=201)

    assert event.pricing_mode == "fixed"
    assert (event.recurrence_frequency, event.recurrence_interval) == ("none", 0)
    assert event.waitinglist_capacity == 0
    assert (event.address, event.location_name, event.latitude, event.longitude) == (None, None, None, None)


@requirement("events.create.defaults", "events.update.immutable")
async def test_the_currency_is_usd_unless_named(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    same = await ada.patch(f"/api/events/{event['id']}", {"event": {"currency": "USD"}})
    other = await ada.patch(f"/api/events/{event['id']}", {"event": {"currency": "EUR"}})

    assert same.status_code == 200
    assert failing_fields(other) == {"currency"}


@requirement("events.create.capacity")
@pytest.mark.parametrize("capacity", [1, 2, 100_000])
async def test_an_event_with_seats_is_accepted(service: Service, capacity: int) -> None:
    assert (await (await service.organizer()).create_event(capacity=capacity))["capacity"] == capacity


@requirement("events.create.capacity")
@pytest.mark.parametrize("capacity", [0, -1, 2**63])
async def test_an_event_without_seats_is_refused(service: Service, capacity: int) -> None:
    assert await refused_event(await service.organizer(), capacity=capacity) == {"capacity"}


@requirement("events.create.currency")
@pytest.mark.parametrize("currency", ["USD", "EUR", "GBP", "JPY", "KWD"])
async def test_a_currency_of_the_processor_is_taken_and_not_listed(service: Service, currency: str) -> None:
    event = await (await service.organizer()).create_event(pricing_mode="fixed", price=100, currency=currency)

    assert "currency" not in event
    assert currency not in str(event)


@requirement("events.create.currency")
@pytest.mark.parametrize("currency", ["XXX", "BTC", "usd", "US", "USDT", "", "USD\n", 840])
async def test_a_currency_the_processor_does_not_know_is_refused(service: Service, currency: Any) -> None:
    assert await refused_event(await service.organizer(), currency=currency) == {"currency"}


@requirement("events.create.recurrence")
@pytest.mark.parametrize("frequency", ["none", "days", "weeks", "months", "years"])
@pytest.mark.parametrize("interval", [0, 1])
async def test_an_event_may_recur(service: Service, frequency: str, interval: int) -> None:
    event = await (await service.organizer()).create_event(recurrence_frequency=frequency, recurrence_interval=interval)

    assert (event["recurrence_frequency"], event["recurrence_interval"]) == (frequency, interval)


@requirement("events.create.recurrence", "events.fields")
async def test_a_recurring_event_that_has_passed_is_followed_by_one_like_it(service: Service) -> None:
    ada = await service.organizer()
    passed = await ada.create_event(recurrence_frequency="weeks", recurrence_interval=2, datetime=yesterday())
    await service.database.transact(continue_series)

    [before, after] = objects_on_page(await ada.get("/api/events"), Event)

    assert (before.status, after.status) == ("expired", "active")
    assert (after.title, after.capacity, after.recurrence_interval) == ("Life drawing", passed["capacity"], 2)
    assert after.datetime - before.datetime == timedelta(weeks=2)


@requirement("events.create")
async def test_null_means_that_an_optional_field_is_absent(service: Service) -> None:
    ada = await service.organizer()
    optional = ["currency", "pricing_mode", "recurrence_frequency", "recurrence_interval", "waitinglist_capacity"]

    event = await ada.create_event(pricing_mode="fixed", price=5, **dict.fromkeys([*optional[:1], *optional[2:]]))
    free = await ada.post("/api/events", {"event": {**event_fields(), "price": 5, "pricing_mode": None}})

    assert (event["recurrence_frequency"], event["recurrence_interval"]) == ("none", 0)
    assert event["waitinglist_capacity"] == 0
    assert free.json()["data"]["pricing_mode"] == "fixed"


@requirement("events.create.recurrence")
@pytest.mark.parametrize("frequency", ["hours", "Weeks", "week", "", 1])
async def test_a_recurrence_frequency_outside_the_list_is_refused(service: Service, frequency: Any) -> None:
    assert await refused_event(await service.organizer(), recurrence_frequency=frequency) == {"recurrence_frequency"}


@requirement("events.create.recurrence", "events.create.waitinglist")
@pytest.mark.parametrize("name", ["recurrence_interval", "waitinglist_capacity"])
@pytest.mark.parametrize("value", [-1, 0.5, "1"])
async def test_an_interval_or_waiting_list_that_is_no_whole_number_is_refused(
    service: Service, name: str, value: Any
) -> None:
    assert await refused_event(await service.organizer(), **{name: value}) == {name}


@requirement("events.create.waitinglist")
@pytest.mark.parametrize("places", [0, 1, 5000])
async def test_a_waiting_list_may_have_any_length(service: Service, places: int) -> None:
    event = await (await service.organizer()).create_event(waitinglist_capacity=places)

    assert event["waitinglist_capacity"] == places


@requirement("events.create.place")
@pytest.mark.parametrize(
    "place",
    [
        {"address": "Rue de l'Université 1, 75007 Paris", "location_name": "Salle Ünïcode"},
        {"latitude": 48.8566, "longitude": 2.3522},
        {"latitude": -90, "longitude": 180},
        {"latitude": 90, "longitude": -180},
        {"latitude": 0, "longitude": 0},
        {"address": None, "location_name": None, "latitude": None, "longitude": None},
    ],
)
async def test_a_place_comes_back_as_given(service: Service, place: dict[str, Any]) -> None:
    event = await (await service.organizer()).create_event(**place)

    assert {name: event[name] for name in place} == place


@requirement("events.create.place")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("latitude", value) for value in (90.01, -90.01, "48.8", True)],
        *[("longitude", value) for value in (180.01, -180.01, "2.3", [2.3])],
        *[("address", value) for value in (1, ["Paris"])],
        ("location_name", {"name": "Studio"}),
    ],
)
async def test_a_place_off_the_map_or_of_another_type_is_refused(service: Service, name: str, value: Any) -> None:
    assert await refused_event(await service.organizer(), **{name: value}) == {name}


@requirement("events.list", "events.fields")
async def test_an_organizer_lists_its_own_events_whole(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    mine = [await ada.create_event(title="First"), await ada.create_event(title="Second")]
    await ben.create_event()

    response = await ada.get("/api/events")

    assert [event.title for event in objects_on_page(response, Event)] == ["First", "Second"]
    assert response.json()["data"] == mine


@requirement("events.list", "auth.admin")
async def test_an_admin_lists_the_events_of_all(new_service: Service) -> None:
    ada, ben = await new_service.organizer(), await new_service.organizer()
    ids = [(await ada.create_event())["id"], (await ben.create_event())["id"]]

    assert [event.id for event in objects_on_page(await (await new_service.admin()).get("/api/events"), Event)] == ids


@requirement("events.get")
async def test_the_registration_count_follows_each_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    path = f"/api/events/{event['id']}"

    polls = await register(service, ada, event, "ann", "bob", "cal")
    assert one(await ada.get(path), Event).registration_count == 2

    await ada.delete(polls[2])
    await ada.delete(polls[1])
    assert one(await ada.get(path), Event).registration_count == 1


@requirement("events.get")
@pytest.mark.parametrize(
    ("fields", "current_price"),
    [
        ({"pricing_mode": "free", "price": 0}, None),
        ({"pricing_mode": "fixed", "price": 2500}, 2500),
        ({"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}, 2500),
    ],
)
async def test_an_event_tells_its_current_price(
    service: Service, fields: dict[str, Any], current_price: int | None
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**fields)

    assert one(await ada.get(f"/api/events/{event['id']}"), Event).current_price == current_price
