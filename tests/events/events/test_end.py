"""When an event ends: later than it begins, moved with it, and shown wherever its date is."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.events.recurrence import clock_length, next_end_at, next_occurrence_at
from tests.events.agents.samples import agent
from tests.events.events.series import all_events, continue_series_now, create_past_series
from tests.events.pages.reading import readable_text, structured_data
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service, event_fields

EVENING = {"datetime": "2036-11-27T17:00:00Z", "timezone": "Europe/Berlin"}
"""An event that begins at 18:00 in Berlin, on a Thursday."""

TOO_EARLY = {"ends_at": ["must be later than datetime"]}


async def change(client: Client, event: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await client.patch(f"/api/events/{event['id']}", {"event": fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_an_event_has_no_end_unless_it_is_given(service: Service) -> None:
    ada = await service.organizer()

    assert (await ada.create_event())["ends_at"] is None
    assert (await ada.create_event(ends_at=None))["ends_at"] is None


async def test_the_end_of_an_event_is_answered_in_utc(service: Service) -> None:
    ada = await service.organizer()

    event = await ada.create_event(**EVENING, ends_at="2036-11-27T20:00:00+01:00")

    assert event["ends_at"] == "2036-11-27T19:00:00Z"
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["ends_at"] == "2036-11-27T19:00:00Z"
    assert [listed["ends_at"] for listed in await all_events(ada)] == ["2036-11-27T19:00:00Z"]


async def test_an_end_is_changed_and_taken_away(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING)

    assert (await change(ada, event, ends_at="2036-11-27T19:00:00Z"))["ends_at"] == "2036-11-27T19:00:00Z"
    assert (await change(ada, event, title="Etching"))["ends_at"] == "2036-11-27T19:00:00Z"
    assert (await change(ada, event, ends_at=None))["ends_at"] is None


async def test_a_new_beginning_alone_moves_the_end_by_as_much(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING, ends_at="2036-11-27T19:00:00Z")

    later = await change(ada, event, datetime="2036-12-03T18:30:00Z")
    both = await change(ada, event, datetime="2036-11-27T17:00:00Z", ends_at="2036-11-27T18:00:00Z")

    assert (later["datetime"], later["ends_at"]) == ("2036-12-03T18:30:00Z", "2036-12-03T20:30:00Z")
    assert (both["datetime"], both["ends_at"]) == ("2036-11-27T17:00:00Z", "2036-11-27T18:00:00Z")


@pytest.mark.parametrize("ends_at", ["2036-11-27T17:00:00Z", "2036-11-27T16:59:59.999999Z", "1970-01-01T00:00:00Z"])
async def test_an_end_that_is_not_later_than_the_beginning_is_refused(service: Service, ends_at: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING, ends_at="2036-11-27T17:00:00.000001Z")
    path = f"/api/events/{event['id']}"

    created = await ada.post("/api/events", {"event": event_fields(**EVENING, ends_at=ends_at)})
    changed = await ada.patch(path, {"event": {"ends_at": ends_at}})
    moved = await ada.patch(path, {"event": {"datetime": "2036-11-28T17:00:00Z", "ends_at": event["ends_at"]}})
    called = await agent(service, ada).call("update_event", event_id=event["id"], ends_at=ends_at)

    for refusal in (created, changed, moved):
        assert (refusal.status_code, refusal.json()["errors"]) == (422, TOO_EARLY)
    assert problem_of(called)["errors"] == TOO_EARLY
    assert (await all_events(ada)) == [event]


async def test_an_end_that_is_no_time_is_refused(service: Service) -> None:
    ada = await service.organizer()

    for wrong in ("tomorrow", 7, True, "", "2036-11-27"):
        refusal = await ada.post("/api/events", {"event": event_fields(**EVENING, ends_at=wrong)})
        assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["ends_at"]), wrong


async def test_the_schema_refuses_an_end_before_the_beginning(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(**EVENING)

    with pytest.raises(Exception, match="it_ends_after_it_begins"):
        await service.run_sql("update events set end_datetime = datetime")


# Series


async def test_later_occurrences_of_an_event_last_as_long_as_the_first(service: Service) -> None:
    ada = await service.organizer()
    [(yesterday,)] = await service.run_sql("select date_trunc('second', now() - interval '1 day')")
    ended_at = yesterday + timedelta(hours=26, minutes=30)
    await create_past_series(service, ada, datetime=yesterday.isoformat(), ends_at=ended_at.isoformat())

    await continue_series_now(service)

    for event in await all_events(ada):
        begins, ends = (datetime.fromisoformat(event[name]) for name in ("datetime", "ends_at"))
        assert ends - begins == timedelta(hours=26, minutes=30)


async def series_in_berlin(service: Service, days: list[datetime], begins: str, ends: str) -> list[tuple[str, str]]:
    """The local times of a weekly event, the first and then one more after each day."""
    ada = await service.organizer()
    times = {
        name: datetime.fromisoformat(f"{days[0]:%Y-%m-%d}T{time}").replace(tzinfo=BERLIN).isoformat()
        for name, time in (("datetime", begins), ("ends_at", ends))
    }
    await ada.create_event(**times, recurrence_frequency="weeks", timezone="Europe/Berlin")
    for day in days:
        await continue_series_now(service, day.replace(hour=23, tzinfo=UTC))
    return [
        (f"{datetime.fromisoformat(event['datetime']).astimezone(BERLIN):%H:%M}", ends_at(event))
        for event in await all_events(ada)
    ]


def ends_at(event: dict[str, Any]) -> str:
    return f"{datetime.fromisoformat(event['ends_at']).astimezone(BERLIN):%H:%M}"


BERLIN = ZoneInfo("Europe/Berlin")
SPRING = [datetime(2037, 3, day) for day in (22, 29)]
"""Days of a weekly series. On the second, the clocks of Berlin go from 2:00 to 3:00."""

AUTUMN = [datetime(2036, 10, day) for day in (19, 26)]
"""On the second, they go from 3:00 to 2:00."""


@pytest.mark.parametrize(
    ("days", "begins", "ends", "second"),
    [
        (SPRING, "01:30", "02:30", ("01:30", "03:30")),
        (SPRING, "00:15", "02:00", ("00:15", "03:00")),
        (SPRING, "02:30", "02:45", ("03:30", "03:45")),
        (SPRING, "01:00", "05:00", ("01:00", "05:00")),
        (AUTUMN, "01:30", "02:30", ("01:30", "02:30")),
        (AUTUMN, "02:15", "03:15", ("02:15", "03:15")),
    ],
)
async def test_an_end_that_a_change_of_the_clocks_has_moved_is_back_the_next_time(
    service: Service, days: list[datetime], begins: str, ends: str, second: tuple[str, str]
) -> None:
    """Before, an end in the hour that is left out was an hour later in the whole rest of the series."""
    assert await series_in_berlin(service, days, begins, ends) == [(begins, ends), second, (begins, ends)]


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"]


@given(
    minute=st.integers(0, 24 * 60 - 1),
    length=st.integers(1, 30 * 60),
    day=st.integers(0, 365),
    zone=st.sampled_from(ZONES),
)
def test_occurrences_of_a_year_keep_the_end_of_the_first_except_around_changes_of_the_clock(
    minute: int, length: int, day: int, zone: str
) -> None:
    place = ZoneInfo(zone)
    local = datetime(2036, 1, 1) + timedelta(days=day, minutes=minute)
    start, end = (moment.replace(tzinfo=place).astimezone(UTC) for moment in (local, local + timedelta(minutes=length)))
    if changes_clocks(start, end, place):
        return
    begins, ends, stored = start, end, None
    for _ in range(60):
        following = next_occurrence_at(start, "weeks", 1, begins, place)
        assert following
        assert ends
        stored = clock_length(begins, ends, stored, place)
        begins, ends = following, next_end_at(begins, ends, following, place, stored)
        assert ends
        if not changes_clocks(begins, ends, place):
            assert ends - begins == end - start


def changes_clocks(begins: datetime, ends: datetime, zone: ZoneInfo) -> bool:
    """Whether the clocks change on one of these days, or on the ones before and after."""
    days = (begins - timedelta(days=1), ends + timedelta(days=1))
    return len({day.astimezone(zone).utcoffset() for day in days}) > 1


async def test_a_changed_end_applies_to_all_later_occurrences(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(
        datetime="2037-03-22T01:30:00+01:00",
        ends_at="2037-03-22T02:30:00+01:00",
        recurrence_frequency="weeks",
        timezone="Europe/Berlin",
    )
    await continue_series_now(service, datetime(2037, 3, 22, 23, tzinfo=UTC))
    [_, second] = await all_events(ada)
    await change(ada, second, ends_at="2037-03-29T05:00:00+02:00")

    for day in (datetime(2037, 3, 29, 23, tzinfo=UTC), datetime(2037, 4, 5, 23, tzinfo=UTC)):
        await continue_series_now(service, day)

    assert [ends_at(event) for event in await all_events(ada)] == ["02:30", "05:00", "05:00", "05:00"]


@pytest.mark.parametrize(
    ("begins", "ends", "next_begins", "expected"),
    [
        # The clocks of Berlin are put back on 26 October 2036 at 3:00, and forward on 29 March 2037 at 2:00.
        ("2036-10-20T18:00", "2036-10-20T20:00", "2036-10-27T18:00", "2036-10-27T20:00"),
        ("2036-10-18T18:00", "2036-10-19T12:00", "2036-10-25T18:00", "2036-10-26T12:00"),
        ("2037-03-21T18:00", "2037-03-22T12:00", "2037-03-28T18:00", "2037-03-29T12:00"),
        # 2:45 is left out on that day.
        ("2037-03-22T02:45", "2037-03-22T03:15", "2037-03-29T03:45", "2037-03-29T04:15"),
    ],
)
def test_an_occurrence_ends_at_the_same_time_of_day_though_clocks_are_changed(
    begins: str, ends: str, next_begins: str, expected: str
) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, last, following, end = (
        datetime.fromisoformat(local).replace(tzinfo=berlin).astimezone(UTC)
        for local in (begins, ends, next_begins, expected)
    )

    assert next_end_at(first, last, following, berlin) == end
    assert next_end_at(first, None, following, berlin) is None


def test_an_occurrence_after_the_clocks_were_put_back_during_the_one_before_takes_as_long() -> None:
    # From 2:30 summer time to 2:15 winter time in Berlin.
    first, last = datetime(2036, 10, 26, 0, 30, tzinfo=UTC), datetime(2036, 10, 26, 1, 15, tzinfo=UTC)
    following = datetime(2036, 11, 2, 1, 30, tzinfo=UTC)

    assert next_end_at(first, last, following, ZoneInfo("Europe/Berlin")) == following + timedelta(minutes=45)


def test_an_end_after_the_last_year_is_left_out() -> None:
    first, last = datetime(9999, 12, 30, tzinfo=UTC), datetime(9999, 12, 31, 6, tzinfo=UTC)

    assert next_end_at(first, last, datetime(9999, 12, 31, tzinfo=UTC)) is None


# Pages


@pytest.mark.parametrize(
    ("ends_at", "language", "expected"),
    [
        (None, "en", "Thursday, November 27, 2036 6:00 PM CET"),
        ("2036-11-27T19:00:00Z", "en", "Thursday, November 27, 2036 6:00 PM \u2013 8:00 PM CET"),
        ("2036-11-27T19:00:00Z", "de", "Donnerstag, 27. November 2036 18:00\u201320:00 MEZ"),
        (
            "2036-11-28T01:00:00Z",
            "de",
            "Donnerstag, 27. November 2036 18:00 \u2013 Freitag, 28. November 2036, 02:00 MEZ",
        ),
    ],
)
async def test_the_page_of_an_event_says_until_when_it_lasts(
    service: Service, ends_at: str | None, language: str, expected: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING, ends_at=ends_at)

    page = await service.http.get(f"{event['public_url']}?lang={language}")

    assert expected in readable_text(page)


async def test_a_time_says_its_zone_twice_where_the_clocks_change_during_the_event(service: Service) -> None:
    ada = await service.organizer()
    night = {"datetime": "2036-10-25T21:00:00Z", "ends_at": "2036-10-26T04:00:00Z", "timezone": "Europe/Berlin"}
    event = await ada.create_event(**night)

    page = readable_text(await service.http.get(f"{event['public_url']}?lang=de"))

    assert "25. Oktober 2036 23:00 MESZ \u2013 Sonntag, 26. Oktober 2036, 05:00 MEZ" in page


async def test_an_event_that_has_begun_is_over_only_when_it_ends(service: Service) -> None:
    ada = await service.organizer()
    [(begins, ends)] = await service.run_sql("select now() - interval '1 hour', now() + interval '1 hour'")
    event = await ada.create_event(datetime=begins.isoformat(), ends_at=ends.isoformat())

    during = readable_text(await service.http.get(event["public_url"]))
    await service.run_sql("update events set end_datetime = now() - interval '1 minute'")
    after = readable_text(await service.http.get(event["public_url"]))

    assert ("This event has begun." in during, "This event is over." in during) == (True, False)
    assert ("This event has begun." in after, "This event is over." in after) == (False, True)


async def test_programs_read_the_end_in_the_page_and_in_the_calendar_file(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING, ends_at="2036-11-27T19:00:00Z")
    endless = await ada.create_event(**EVENING)

    file = await service.http.get(f"/events/{event['id']}/calendar.ics")

    assert structured_data(await service.http.get(event["public_url"]))["endDate"] == "2036-11-27T20:00:00+01:00"
    assert "DTEND:20361127T190000Z" in file.text
    assert "endDate" not in structured_data(await service.http.get(endless["public_url"]))
    assert "DTEND:20361127T180000Z" in (await service.http.get(f"/events/{endless['id']}/calendar.ics")).text


async def test_lists_and_forms_say_the_end_too(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**EVENING, ends_at="2036-11-27T19:00:00Z")

    for path, moment in {
        f"/organizers/{ada.slug}": "Do., 27. Nov. 2036, 18:00\u201320:00 MEZ",
        f"/events/{event['id']}/embed": "Donnerstag, 27. November 2036 18:00\u201320:00 MEZ",
    }.items():
        page = await service.http.get(f"{path}?lang=de")
        assert moment in readable_text(page), path
