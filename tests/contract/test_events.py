"""Events are published, read, changed and cancelled."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Registration, failing_fields, listed, one, refusal
from tests.support import Client, Service, event_fields

YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).isoformat()


async def refused(client: Client, **fields: Any) -> set[str]:
    """The fields for which an event is refused."""
    return failing_fields(await client.post("/api/events", {"event": event_fields(**fields)}))


async def fill(service: Service, organizer: Client, event: dict[str, Any], *names: str) -> list[str]:
    """Register people by name and settle; the addresses of their registrations."""
    polls = [await organizer.register(event["id"], email=f"{name}@example.com") for name in names]
    await service.settle()
    return polls


class Tags(HTMLParser):
    """The tags of a piece of HTML, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


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
    assert listed(await ada.get("/api/events"), Event) == []


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
    assert await refused(await service.organizer(), **{name: value}) == {name}


@requirement("events.create")
async def test_a_field_that_events_do_not_have_is_refused(service: Service) -> None:
    assert await refused(await service.organizer(), capacty=10) == {"capacty"}


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
async def test_an_event_with_seats_is_taken(service: Service, capacity: int) -> None:
    assert (await (await service.organizer()).create_event(capacity=capacity))["capacity"] == capacity


@requirement("events.create.capacity")
@pytest.mark.parametrize("capacity", [0, -1, 2**63])
async def test_an_event_without_seats_is_refused(service: Service, capacity: int) -> None:
    assert await refused(await service.organizer(), capacity=capacity) == {"capacity"}


@requirement("events.create.currency")
@pytest.mark.parametrize("currency", ["USD", "EUR", "GBP", "JPY", "KWD"])
async def test_a_currency_of_the_processor_is_taken_and_not_listed(service: Service, currency: str) -> None:
    event = await (await service.organizer()).create_event(pricing_mode="fixed", price=100, currency=currency)

    assert "currency" not in event
    assert currency not in str(event)


@requirement("events.create.currency")
@pytest.mark.parametrize("currency", ["XXX", "BTC", "usd", "US", "USDT", "", "USD\n", 840, None])
async def test_what_is_no_currency_of_the_processor_is_refused(service: Service, currency: Any) -> None:
    assert await refused(await service.organizer(), currency=currency) == {"currency"}


@requirement("events.create.recurrence")
@pytest.mark.parametrize("frequency", ["none", "days", "weeks", "months", "years"])
@pytest.mark.parametrize("interval", [0, 1])
async def test_an_event_may_recur(service: Service, frequency: str, interval: int) -> None:
    event = await (await service.organizer()).create_event(recurrence_frequency=frequency, recurrence_interval=interval)

    assert (event["recurrence_frequency"], event["recurrence_interval"]) == (frequency, interval)


@requirement("events.create.recurrence")
@pytest.mark.parametrize("frequency", ["hours", "Weeks", "week", "", None, 1])
async def test_another_frequency_is_refused(service: Service, frequency: Any) -> None:
    assert await refused(await service.organizer(), recurrence_frequency=frequency) == {"recurrence_frequency"}


@requirement("events.create.recurrence", "events.create.waitinglist")
@pytest.mark.parametrize("name", ["recurrence_interval", "waitinglist_capacity"])
@pytest.mark.parametrize("value", [-1, 0.5, "1", None])
async def test_what_is_no_whole_number_from_0_on_is_refused(service: Service, name: str, value: Any) -> None:
    assert await refused(await service.organizer(), **{name: value}) == {name}


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
    assert await refused(await service.organizer(), **{name: value}) == {name}


@requirement("events.list", "events.fields")
async def test_an_organizer_lists_its_own_events_whole(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    mine = [await ada.create_event(title="First"), await ada.create_event(title="Second")]
    await ben.create_event()

    response = await ada.get("/api/events")

    assert [event.title for event in listed(response, Event)] == ["First", "Second"]
    assert response.json()["data"] == mine


@requirement("events.list", "auth.admin")
async def test_an_admin_lists_the_events_of_all(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    ids = [(await ada.create_event())["id"], (await ben.create_event())["id"]]

    assert [event.id for event in listed(await (await service.admin()).get("/api/events"), Event)] == ids


@requirement("events.get")
async def test_the_registration_count_is_live(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    path = f"/api/events/{event['id']}"

    polls = await fill(service, ada, event, "ann", "bob", "cal")
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
        {"min_price": 1, "max_price": 9},
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
        ("status", "full"),
        ("id", 4711),
        ("registration_count", 0),
    ],
)
async def test_a_change_that_is_not_acceptable_changes_nothing(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    before = await ada.create_event(pricing_mode="fixed", price=5)

    response = await ada.patch(f"/api/events/{before['id']}", {"event": {"body": "Changed", name: value}})

    assert failing_fields(response) == {name}
    assert (await ada.get(f"/api/events/{before['id']}")).json()["data"] == before


@requirement("events.update")
async def test_capacity_cannot_fall_below_the_seats_taken(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=3)
    await fill(service, ada, event, "ann", "bob")

    below = await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 1}})
    exact = await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})

    assert failing_fields(below) == {"capacity"}
    assert one(exact, Event).status == "full"


@requirement("events.update.immutable")
@pytest.mark.parametrize("change", [{"pricing_mode": "dynamic"}, {"pricing_mode": "free"}, {"currency": "GBP"}])
async def test_pricing_mode_and_currency_never_change(service: Service, change: dict[str, str]) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=500, currency="EUR", min_price=1, max_price=900)
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
    assert [each.id for each in listed(await ben.get("/api/events"), Event)] == [event["id"]]


@requirement("events.update.organizer", "auth.organizer-scope")
async def test_an_organizer_cannot_give_its_event_away(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"organizer_id": ben.id}})

    assert refusal(response) == (403, "forbidden")
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).organizer_id == ada.id
    assert listed(await ben.get("/api/events"), Event) == []


@requirement("events.update.organizer")
async def test_an_event_cannot_be_handed_to_nobody(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await (await service.admin()).patch(f"/api/events/{event['id']}", {"event": {"organizer_id": 4711}})

    assert failing_fields(response) == {"organizer_id"}
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).organizer_id == ada.id


@requirement("events.cancel", "events.fields")
async def test_cancelling_tells_when_and_keeps_everything_else(service: Service) -> None:
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
    [poll] = await fill(service, ada, event, "ann")

    cancelled = (await ada.delete(f"/api/events/{event['id']}")).json()

    assert (await ada.get(f"/api/events/{event['id']}")).json() == cancelled
    assert listed(await ada.get("/api/events"), Event)[0].registration_count == 1
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

    await fill(service, ada, event, "ann")
    assert one(await ada.get(path), Event).status == "active"
    [poll] = await fill(service, ada, event, "bob")
    assert one(await ada.get(path), Event).status == "full"

    await ada.delete(poll)
    assert one(await ada.get(path), Event).status == "active"


@requirement("events.status")
async def test_an_event_whose_time_has_passed_is_expired(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await fill(service, ada, event, "ann")

    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": YESTERDAY}})

    assert one(response, Event).status == "expired"


@requirement("events.status", "events.cancel")
async def test_a_cancelled_event_is_cancelled_whatever_else_it_is(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await fill(service, ada, event, "ann")
    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": YESTERDAY}})

    assert one(await ada.delete(f"/api/events/{event['id']}"), Event).status == "cancelled"


@requirement("events.public-url", "events.create")
async def test_the_public_page_lies_under_the_slug_of_the_organizer(service: Service) -> None:
    ada = await service.organizer(slug="ada-events")

    event = await ada.create_event()

    assert event["public_url"] == f"http://events.test/organizers/ada-events/events/{event['id']}"


@requirement("events.embed", "events.create")
@pytest.mark.parametrize("title", ["Life drawing", '"><script>alert(1)</script>', "Tom & Jerry's <b>show</b>"])
async def test_the_embed_code_is_one_iframe_of_the_form(service: Service, title: str) -> None:
    event = await (await service.organizer()).create_event(title=title)

    [(tag, attributes)] = Tags(event["embed_code"]).found
    assert (tag, attributes["src"]) == ("iframe", event["embed_url"])
    assert event["embed_code"].endswith("</iframe>")
    assert event["embed_url"] == f"http://events.test/events/{event['id']}/embed"


@requirement("events.images")
async def test_an_event_without_photos_has_no_images(service: Service) -> None:
    event = await (await service.organizer()).create_event()

    assert (event["image_urls"], event["primary_image_url"]) == ([], None)


@requirement("events.images")
async def test_a_photo_that_was_never_uploaded_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert await refused(ada, image_keys=["nothing/here.png"]) == {"image_keys"}
    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": ["nothing/here.png"]}})
    assert failing_fields(response) == {"image_keys"}
