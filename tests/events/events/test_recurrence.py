"""A recurring event that has passed is followed by its next occurrence: once, ahead, and while the series lasts."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.events.events import recurrence
from holdfast.events.events.part import PART
from tests.events.events.series import EVENING, all_events, continue_series_now, create_past_series, dates
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually


async def test_a_monthly_event_on_the_31st_takes_place_at_the_end_of_every_month_of_a_year(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    for _ in range(12):
        latest = datetime.fromisoformat((await all_events(ada))[-1]["datetime"])
        assert await continue_series_now(service, latest - timedelta(microseconds=1)) == 0
        assert await continue_series_now(service, latest) == 1
        assert await continue_series_now(service, latest) == 0

    assert [event["datetime"] for event in await all_events(ada)] == [
        f"{day}T18:30:00Z" for day in ["2027-01-31", *dates(EVENING, "months", 1, 12)]
    ]


async def test_many_processes_continue_an_event_once(service: Service) -> None:
    ada = await service.organizer()
    for _ in range(3):
        await create_past_series(service, ada)

    continued = await asyncio.gather(*(continue_series_now(service) for _ in range(8)))

    assert sum(continued) == 3
    assert len(await all_events(ada)) == 6


async def test_the_schema_refuses_a_second_continuation(service: Service) -> None:
    ada = await service.organizer()
    event = await create_past_series(service, ada)
    await continue_series_now(service)
    await service.run_sql("update events set continued_at = null where id = %(id)s", id=event["id"])

    with pytest.raises(Exception, match="events_follows_id_key"):
        await continue_series_now(service)


async def test_after_a_long_time_without_a_look_the_next_occurrence_lies_ahead(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")

    assert await continue_series_now(service, datetime(2029, 2, 10, tzinfo=UTC)) == 1
    assert await continue_series_now(service, datetime(2029, 2, 10, tzinfo=UTC)) == 0

    assert [event["datetime"] for event in await all_events(ada)] == ["2027-01-31T18:30:00Z", "2029-02-28T18:30:00Z"]


@pytest.mark.parametrize("frequency", ["none", "weeks"])
async def test_an_event_that_does_not_recur_or_was_cancelled_has_no_next_occurrence(
    service: Service, frequency: str
) -> None:
    ada = await service.organizer()
    event = await create_past_series(service, ada, recurrence_frequency=frequency)
    if frequency != "none":
        await ada.delete(f"/api/events/{event['id']}")

    assert await continue_series_now(service) == 0
    assert len(await all_events(ada)) == 1


async def test_a_series_ends_with_the_occurrence_that_is_cancelled(service: Service) -> None:
    ada = await service.organizer()
    await create_past_series(service, ada)
    await continue_series_now(service)
    [_, next_one] = await all_events(ada)
    await ada.delete(f"/api/events/{next_one['id']}")

    assert await continue_series_now(service, EVENING.replace(year=2100)) == 0


async def test_a_series_beyond_the_end_of_the_calendar_is_handled_once(service: Service) -> None:
    ada = await service.organizer()
    await create_past_series(service, ada, recurrence_frequency="years", recurrence_interval=10_000)

    assert await continue_series_now(service) == 1
    assert await continue_series_now(service) == 0
    assert len(await all_events(ada)) == 1


async def test_a_new_date_restarts_the_count_of_a_monthly_event(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    tuesday = datetime(2027, 2, 2, 19, tzinfo=UTC)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": tuesday.isoformat()}})

    await continue_series_now(service, tuesday)

    assert (await all_events(ada))[-1]["datetime"] == "2027-03-02T19:00:00Z"


@pytest.mark.parametrize(
    ("change", "then"),
    [
        ({"recurrence_frequency": "weeks"}, "2027-03-07"),
        ({"recurrence_interval": 2}, "2027-04-28"),
        ({"title": "Portraits", "capacity": 50, "recurrence_interval": 0}, "2027-03-31"),
    ],
)
async def test_a_new_frequency_or_interval_restarts_the_count_and_other_changes_do_not(
    service: Service, change: dict[str, Any], then: str
) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    await continue_series_now(service, EVENING)
    [_, february] = await all_events(ada)

    await ada.patch(f"/api/events/{february['id']}", {"event": change})
    await continue_series_now(service, datetime(2027, 2, 28, 18, 30, tzinfo=UTC))

    assert (await all_events(ada))[-1]["datetime"] == f"{then}T18:30:00Z"


async def test_a_series_keeps_to_the_clocks_of_its_time_zone_when_they_change(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime="2027-03-22T18:00:00Z", recurrence_frequency="weeks", timezone="Europe/Berlin")

    for day in (22, 29):
        await continue_series_now(service, datetime(2027, 3, day, 18, tzinfo=UTC))

    # 19:00 in Berlin.
    assert [event["datetime"] for event in await all_events(ada)] == [
        *("2027-03-22T18:00:00Z", "2027-03-29T17:00:00Z", "2027-04-05T17:00:00Z"),
    ]


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
async def test_a_new_time_zone_restarts_the_count_of_a_weekly_event(service: Service, zone: str | None) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime="2027-03-22T19:00:00Z", recurrence_frequency="weeks", timezone="Europe/London")
    await continue_series_now(service, datetime(2027, 3, 22, 19, tzinfo=UTC))
    [_, second] = await all_events(ada)
    assert second["datetime"] == "2027-03-29T18:00:00Z"

    await ada.patch(f"/api/events/{second['id']}", {"event": {"timezone": zone}})
    await continue_series_now(service, datetime(2027, 3, 29, 18, tzinfo=UTC))

    assert (await all_events(ada))[-1]["datetime"] == "2027-04-05T18:00:00Z"


async def test_an_event_moved_to_a_later_date_after_it_was_continued_is_not_continued_again(service: Service) -> None:
    ada = await service.organizer()
    event = await create_past_series(service, ada)
    await continue_series_now(service)

    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": "2090-01-01T00:00:00Z"}})

    assert await continue_series_now(service, datetime(2090, 1, 2, tzinfo=UTC)) == 1
    assert [event["datetime"][:4] for event in await all_events(ada)].count("2090") == 2


async def test_the_recurrence_loop_creates_the_next_occurrence_of_a_past_event(service: Service) -> None:
    assert recurrence.LOOP in PART.loops
    ada = await service.organizer()
    await create_past_series(service, ada)

    async def continued() -> bool:
        return len(await all_events(ada)) == 2

    async with run_in_background(recurrence.LOOP.run(service.database)):
        await eventually(continued, seconds=5)


async def test_the_recurrence_loop_knows_when_the_next_event_passes(service: Service) -> None:
    assert await service.database.read(recurrence.next_to_continue) is None
    ada = await service.organizer()
    [(soon,)] = await service.run_sql("select now() + interval '1 hour'")
    await ada.create_event(datetime=soon.isoformat(), recurrence_frequency="weeks")

    assert 3500 < (await service.database.read(recurrence.next_to_continue) or 0) <= 3600
