"""The time zone of an event, and until when people can cancel: exact names and bounds, kept, shown, changed."""

from collections.abc import Iterator
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones, reset_tzpath

import pytest

from holdfast.events.events.time_zones import ZONES, zone
from tests.events.agents.samples import agent
from tests.events.events.series import all_events, continue_series_now, create_past_series
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service, event_fields

UNKNOWN = {"timezone": ["must be the IANA name of a time zone, such as Europe/Berlin"]}


async def fields_of(client: Client, event_id: int, *fields: str) -> list[Any]:
    event = (await client.get(f"/api/events/{event_id}")).json()["data"]
    return [event[name] for name in fields]


async def test_an_event_has_no_time_zone_and_no_limit_for_cancelling_unless_they_are_given(service: Service) -> None:
    ada = await service.organizer()

    event = await ada.create_event()

    assert (event["timezone"], event["cancellation_hours"]) == (None, 0)


async def test_a_time_zone_and_a_limit_are_taken_shown_changed_and_taken_back(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(timezone="Europe/Berlin", cancellation_hours=24)
    path = f"/api/events/{event['id']}"
    assert (event["timezone"], event["cancellation_hours"]) == ("Europe/Berlin", 24)

    for change in ({"timezone": "America/Argentina/Buenos_Aires"}, {"cancellation_hours": 8760}, {"title": "Etching"}):
        answer = await ada.patch(path, {"event": change})
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"].items() >= change.items()
    assert await fields_of(ada, event["id"], "timezone", "cancellation_hours") == [
        "America/Argentina/Buenos_Aires",
        8760,
    ]
    [listed] = await all_events(ada)
    assert (listed["timezone"], listed["cancellation_hours"]) == ("America/Argentina/Buenos_Aires", 8760)

    await ada.patch(path, {"event": {"timezone": None, "cancellation_hours": 0}})

    assert await fields_of(ada, event["id"], "timezone", "cancellation_hours") == [None, 0]


async def test_a_date_is_answered_in_utc_whatever_the_time_zone_is(service: Service) -> None:
    ada = await service.organizer()

    event = await ada.create_event(timezone="Asia/Tokyo", datetime="2031-05-01T18:00:00+09:00")

    assert event["datetime"] == "2031-05-01T09:00:00Z"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Europe/Atlantis",
            "europe/berlin",
            "EUROPE/BERLIN",
            " Europe/Berlin",
            "Europe/Berlin\n",
            "",
            "+02:00",
            "CEST",
        ),
        *("localtime", "posixrules", "Factory", "posix/Europe/Berlin", "right/Europe/Berlin", "tzdata.zi", "zone.tab"),
        *("../../../../etc/passwd", "/usr/share/zoneinfo/UTC", "Europe", "Europe/Berlin\u202e", "\u0415urope/Berlin"),
    ],
)
async def test_a_name_that_is_not_exactly_a_time_zone_is_refused_with_the_reason(service: Service, name: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event(timezone="UTC")

    created = await ada.post("/api/events", {"event": event_fields(timezone=name)})
    changed = await ada.patch(f"/api/events/{event['id']}", {"event": {"timezone": name}})
    called = await agent(service, ada).call("update_event", event_id=event["id"], timezone=name)

    assert (created.status_code, created.json()["errors"]) == (422, UNKNOWN)
    assert (changed.status_code, changed.json()["errors"]) == (422, UNKNOWN)
    assert problem_of(called)["errors"] == UNKNOWN
    assert await fields_of(ada, event["id"], "timezone") == ["UTC"]


async def test_a_time_zone_that_is_no_text_or_too_long_is_refused(service: Service) -> None:
    ada = await service.organizer()

    wrongs: list[Any] = [7, ["UTC"], {}, True, "x" * 65, "x" * 10_000, "UTC\x00"]
    for wrong in wrongs:
        refusal = await ada.post("/api/events", {"event": event_fields(timezone=wrong)})
        assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["timezone"]), wrong


@pytest.mark.parametrize("hours", [-1, 8761, 2**31, 1.5, "24", True, None])
async def test_a_limit_below_none_or_above_a_year_is_refused(service: Service, hours: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event(cancellation_hours=3)

    refusal = await ada.patch(f"/api/events/{event['id']}", {"event": {"cancellation_hours": hours}})

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["cancellation_hours"])
    assert await fields_of(ada, event["id"], "cancellation_hours") == [3]


async def test_the_schema_refuses_a_negative_limit_for_cancelling(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    with pytest.raises(Exception, match="cancellation_hours_check"):
        await service.run_sql("update events set cancellation_hours = -1 where id = %(id)s", id=event["id"])


async def test_the_next_occurrence_has_the_same_time_zone_and_limit_for_cancelling(service: Service) -> None:
    ada = await service.organizer()
    await create_past_series(service, ada, timezone="Europe/Lisbon", cancellation_hours=48)

    await continue_series_now(service)

    was, ahead = await all_events(ada)
    assert (ahead["timezone"], ahead["cancellation_hours"]) == ("Europe/Lisbon", 48)
    assert was["id"] != ahead["id"]


def test_every_accepted_time_zone_can_be_loaded() -> None:
    assert {str(zone(name)) for name in ZONES} == ZONES
    assert zone(None) == UTC
    assert {"UTC", "Europe/Kyiv", "Europe/Kiev", "Asia/Kolkata", "America/Indiana/Knox", "Etc/GMT+5"} <= ZONES


async def test_a_time_zone_that_only_this_machine_has_is_refused(service: Service, own_zones: set[str]) -> None:
    ada = await service.organizer()

    for name in own_zones:
        refusal = await ada.post("/api/events", {"event": event_fields(timezone=name)})
        assert (refusal.status_code, refusal.json()["errors"]) == (422, UNKNOWN)
    assert (await ada.create_event(timezone="Europe/Berlin"))["timezone"] == "Europe/Berlin"


@pytest.fixture
def own_zones(tmp_path: Path) -> Iterator[set[str]]:
    """Names of time zones of a machine that lists no others."""
    names = {"localtime", "posixrules", "Mars/Base"}
    (tmp_path / "Mars").mkdir()
    for name in names:
        (tmp_path / name).write_bytes((files("tzdata") / "zoneinfo/UTC").read_bytes())
    reset_tzpath([str(tmp_path)])
    assert names - {"posixrules"} <= available_timezones()
    yield names
    reset_tzpath()
