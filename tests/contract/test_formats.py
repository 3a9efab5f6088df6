"""How answers are wrapped, and how they tell the time."""

from datetime import UTC, datetime

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import ApiKey, Event, Registration, one, unpaged_objects
from tests.helpers.events_service import Service


@requirement("format.data")
async def test_objects_and_unpaged_lists_are_wrapped_in_data(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    paths = [f"/api/events/{event['id']}", f"/api/events/{event['id']}/price_history", poll, "/api/keys"]

    answers = [await ada.get(path) for path in paths]

    assert [list(answer.json()) for answer in answers] == [["data"]] * 4
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}


@requirement("format.data")
async def test_a_created_resource_is_wrapped_in_data(new_service: Service) -> None:
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}
    registered = await new_service.anonymous.post("/api/organizers/register", {"organizer": organizer})
    ada = await new_service.organizer()
    key = await ada.post("/api/keys", {"api_key": {"name": "Box office"}})

    assert [list(answer.json()) for answer in (registered, key)] == [["data"], ["data"]]


@requirement("format.timestamps")
async def test_every_timestamp_is_iso_8601_in_utc(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    history = (await ada.get(f"/api/events/{event['id']}/price_history")).json()["data"]
    cancelled = (await ada.delete(f"/api/events/{event['id']}")).json()["data"]
    registration = (await ada.get(poll)).json()["data"]
    [key] = (await ada.get("/api/keys")).json()["data"]

    moments = [
        cancelled["datetime"],
        cancelled["cancelled_at"],
        history[0]["timestamp"],
        registration["received_at"],
        key["inserted_at"],
    ]

    assert [moment for moment in moments if not moment.endswith("Z")] == []
    assert {datetime.fromisoformat(moment).utcoffset() for moment in moments} == {UTC.utcoffset(None)}


@requirement("format.timestamps")
async def test_a_timestamp_of_a_change_is_the_time_of_the_change(service: Service) -> None:
    before = datetime.now(UTC)
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    moments = [
        one(await ada.delete(f"/api/events/{event['id']}"), Event).cancelled_at,
        one(await ada.get(poll), Registration).received_at,
        unpaged_objects(await ada.get("/api/keys"), ApiKey)[0].inserted_at,
    ]

    assert [moment for moment in moments if not (moment and before <= moment <= datetime.now(UTC))] == []


@requirement("format.timestamps")
@pytest.mark.parametrize(
    ("sent", "moment"),
    [
        ("2031-05-01T18:30:00Z", "2031-05-01T18:30:00Z"),
        ("2031-05-01T18:30:00+02:00", "2031-05-01T16:30:00Z"),
        ("2031-12-31T23:30:00-05:00", "2032-01-01T04:30:00Z"),
        ("2031-05-01T18:30:00.250000Z", "2031-05-01T18:30:00.250000Z"),
        ("2031-05-01T18:30:00", "2031-05-01T18:30:00Z"),
    ],
)
async def test_a_moment_comes_back_in_utc(service: Service, sent: str, moment: str) -> None:
    event = await (await service.organizer()).create_event(datetime=sent)

    assert datetime.fromisoformat(event["datetime"]) == datetime.fromisoformat(moment)
    assert event["datetime"].endswith("Z")


@requirement("format.timestamps")
@pytest.mark.parametrize(
    ("sent", "moment"),
    [("2031-05-01T18:30:00+02:00", "2031-05-01T16:30:00Z"), ("2031-05-01T18:30:00", "2031-05-01T18:30:00Z")],
)
async def test_a_moment_that_is_changed_comes_back_in_utc(service: Service, sent: str, moment: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    changed = await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": sent}})

    assert one(changed, Event).datetime == datetime.fromisoformat(moment)
    assert changed.json()["data"]["datetime"].endswith("Z")
