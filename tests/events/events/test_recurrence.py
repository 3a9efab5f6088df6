"""A recurring event that has passed is followed by its next occurrence: once, ahead, counted from the first date."""

import asyncio
import calendar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events import jobs
from holdfast.events.events import recurrence
from holdfast.events.events.model import Frequency
from holdfast.events.events.recurrence import continue_series, following, occurrence_to_show
from holdfast.events.photos.retention import clear_photos
from tests.events.photos.steps import a_day_passes, photo, upload
from tests.support import Client, Service, eventually

EVENING = datetime(2027, 1, 31, 18, 30, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
FREQUENCIES: list[Frequency] = ["days", "weeks", "months", "years"]


def dates(start: datetime, frequency: Frequency, interval: int, count: int) -> list[str]:
    """The days of so many occurrences after the first."""
    found: list[datetime] = [start]
    while len(found) <= count:
        date = following(start, frequency, interval, found[-1])
        assert date
        assert date.timetz() == start.timetz()
        found.append(date)
    return [f"{date:%Y-%m-%d}" for date in found[1:]]


# The calendar


def test_a_monthly_series_on_the_31st_keeps_to_the_end_of_each_month() -> None:
    assert dates(EVENING, "months", 1, 12) == [
        *("2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30", "2027-07-31"),
        *("2027-08-31", "2027-09-30", "2027-10-31", "2027-11-30", "2027-12-31", "2028-01-31"),
    ]


def test_a_yearly_series_on_a_leap_day_is_back_on_it_in_each_leap_year() -> None:
    assert dates(datetime(2028, 2, 29, tzinfo=UTC), "years", 1, 5) == [
        *("2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29", "2033-02-28"),
    ]


@pytest.mark.parametrize(
    ("frequency", "interval", "expected"),
    [
        ("days", 1, ["2027-02-01", "2027-02-02"]),
        ("days", 0, ["2027-02-01", "2027-02-02"]),
        ("days", 10, ["2027-02-10", "2027-02-20"]),
        ("weeks", 1, ["2027-02-07", "2027-02-14"]),
        ("weeks", 0, ["2027-02-07", "2027-02-14"]),
        ("weeks", 2, ["2027-02-14", "2027-02-28"]),
        ("months", 0, ["2027-02-28", "2027-03-31"]),
        ("months", 3, ["2027-04-30", "2027-07-31"]),
        ("months", 13, ["2028-02-29", "2029-03-31"]),
        ("years", 0, ["2028-01-31", "2029-01-31"]),
        ("years", 4, ["2031-01-31", "2035-01-31"]),
    ],
)
def test_a_series_recurs_every_so_many_days_weeks_months_or_years(
    frequency: Frequency, interval: int, expected: list[str]
) -> None:
    assert dates(EVENING, frequency, interval, 2) == expected


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_a_series_ends_with_the_calendar(frequency: Frequency) -> None:
    assert following(datetime(9999, 12, 31, tzinfo=UTC), frequency, 1, datetime(9999, 12, 31, 1, tzinfo=UTC)) is None
    assert following(datetime(2027, 1, 31, tzinfo=UTC), frequency, 10_000_000, EVENING) is None


@given(start=MOMENTS, later=MOMENTS, frequency=st.sampled_from(FREQUENCIES), interval=st.integers(0, 40))
def test_the_next_date_is_the_first_one_ahead_of_all_those_counted_from_the_start(
    start: datetime, later: datetime, frequency: Frequency, interval: int
) -> None:
    start, after = sorted((start, later))
    next_date = following(start, frequency, interval, after)
    assert next_date

    # Count along the series, which is what "counted from the first date" means.
    every = max(1, interval)
    date, count = start, 0
    while date <= after:
        count += 1
        date = counted(start, frequency, every * count)
    assert next_date == (date if count else counted(start, frequency, every))


def counted(start: datetime, frequency: Frequency, count: int) -> datetime:
    """So many days, weeks, months or years after the start, the slow way."""
    match frequency:
        case "months" | "years":
            year, month = start.year, start.month
            for _ in range(count * (12 if frequency == "years" else 1)):
                year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            return start.replace(year=year, month=month, day=min(start.day, calendar.monthrange(year, month)[1]))
        case "weeks":
            return start + timedelta(weeks=count)
        case _:
            return start + timedelta(days=count)


# The events


async def goes_on(service: Service, now: datetime | None = None) -> int:
    """Continue what has passed by then; how many events had."""
    return await service.database.transact(lambda tx: continue_series(tx, now))


async def all_events(client: Client) -> list[dict[str, Any]]:
    return (await client.get("/api/events")).json()["data"]


async def past(service: Service, ada: Client, **fields: Any) -> dict[str, Any]:
    """A weekly event that took place yesterday, and has not been continued."""
    [(yesterday,)] = await service.run_sql("select date_trunc('second', now() - interval '1 day')")
    return await ada.create_event(**{"recurrence_frequency": "weeks", "datetime": yesterday.isoformat(), **fields})


async def to_show(service: Service, event_id: int) -> int | None:
    return await service.database.read(lambda tx: occurrence_to_show(tx, event_id))


async def test_a_monthly_event_on_the_31st_takes_place_at_the_end_of_every_month_of_a_year(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    for _ in range(12):
        latest = datetime.fromisoformat((await all_events(ada))[-1]["datetime"])
        assert await goes_on(service, latest - timedelta(microseconds=1)) == 0
        assert await goes_on(service, latest) == 1
        assert await goes_on(service, latest) == 0

    assert [each["datetime"] for each in await all_events(ada)] == [
        f"{day}T18:30:00Z" for day in ["2027-01-31", *dates(EVENING, "months", 1, 12)]
    ]


async def test_an_occurrence_is_an_event_of_its_own_with_the_same_fields(service: Service) -> None:
    ada = await service.organizer()
    fields = {
        "title": "Printing",
        "price": 2500,
        "pricing_mode": "dynamic",
        "min_price": 1000,
        "max_price": 6000,
        "currency": "EUR",
        "capacity": 3,
        "waitinglist_capacity": 4,
        "recurrence_interval": 2,
        "address": "Rue de l'Université 1, 75007 Paris",
        "location_name": "Studio 4",
        "latitude": 48.8566,
        "longitude": 2.3522,
    }
    keys = [await upload(service, ada) for _ in range(2)]
    event = await ada.create_event(
        datetime=EVENING.isoformat(), recurrence_frequency="weeks", image_keys=keys, **fields
    )
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    await goes_on(service, EVENING)

    [was, following_id] = [each["id"] for each in await all_events(ada)]
    next_one = (await ada.get(f"/api/events/{following_id}")).json()["data"]
    assert was == event["id"]
    assert (next_one["datetime"], next_one["registration_count"]) == ("2027-02-14T18:30:00Z", 0)
    assert {name: next_one[name] for name in fields if name != "currency"} | {"currency": "EUR"} == fields
    assert next_one["current_price"] == 2500
    assert len(next_one["image_urls"]) == 2
    assert (next_one["image_urls"], next_one["primary_image_url"]) == (event["image_urls"], event["primary_image_url"])
    assert next_one["public_url"] == event["public_url"].replace(f"/{was}", f"/{following_id}")
    assert (await ada.get(poll)).json()["data"]["status"] == "registered"
    [first] = (await ada.get(f"/api/events/{following_id}/price_history")).json()["data"]
    assert (first["reason"], first["original_price"], first["new_price"]) == ("init", None, 2500)


OWN = {
    *("id", "datetime", "registered_count", "waitlisted_count", "current_price", "cancelled_at", "inserted_at"),
    *("follows_id", "continued_at"),
}
"""The columns in which an occurrence begins anew; whoever adds one decides which kind it is."""
SAME = {
    *("organizer_id", "title", "body", "capacity", "waitinglist_capacity", "currency", "pricing_mode"),
    *("price", "min_price", "max_price", "recurrence_frequency", "recurrence_interval", "recurs_from"),
    *("address", "location_name", "latitude", "longitude", "image_keys"),
}


async def test_every_column_of_an_event_is_carried_over_or_begins_anew(service: Service) -> None:
    ada = await service.organizer()
    await past(service, ada, pricing_mode="fixed", price=5, image_keys=[await upload(service, ada)])
    await goes_on(service)

    [(was,), (is_now,)] = await service.run_sql("select to_json(events) from events order by id")

    assert set(was) == OWN | SAME
    assert {name: is_now[name] for name in SAME} == {name: was[name] for name in SAME}
    assert is_now["follows_id"] == was["id"]


async def test_a_photo_is_kept_for_the_occurrence_ahead_when_the_past_one_shows_it_no_more(service: Service) -> None:
    ada = await service.organizer()
    was = await past(service, ada, image_keys=[await upload(service, ada)])
    await goes_on(service)

    await ada.patch(f"/api/events/{was['id']}", {"event": {"image_keys": []}})
    await a_day_passes(service)
    await clear_photos(service.database)

    before, ahead = await all_events(ada)
    assert (before["image_urls"], ahead["image_urls"]) == ([], was["image_urls"])
    assert await photo(service, ahead["primary_image_url"])


async def test_a_moving_price_counts_from_the_day_its_occurrence_was_created(service: Service) -> None:
    ada = await service.organizer()
    event = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000, "capacity": 10}
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="weeks", **event)
    await goes_on(service, EVENING)

    assert await service.run_sql("select inserted_at from events order by id desc limit 1") == [(EVENING,)]


async def test_many_processes_continue_an_event_once(service: Service) -> None:
    ada = await service.organizer()
    for _ in range(3):
        await past(service, ada)

    continued = await asyncio.gather(*(goes_on(service) for _ in range(8)))

    assert sum(continued) == 3
    assert len(await all_events(ada)) == 6


async def test_the_schema_itself_refuses_a_second_continuation(service: Service) -> None:
    ada = await service.organizer()
    event = await past(service, ada)
    await goes_on(service)
    await service.run_sql("update events set continued_at = null where id = %(id)s", id=event["id"])

    with pytest.raises(Exception, match="events_follows_id_key"):
        await goes_on(service)


async def test_after_a_long_time_without_a_look_the_next_occurrence_lies_ahead(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")

    assert await goes_on(service, datetime(2029, 2, 10, tzinfo=UTC)) == 1
    assert await goes_on(service, datetime(2029, 2, 10, tzinfo=UTC)) == 0

    assert [each["datetime"] for each in await all_events(ada)] == ["2027-01-31T18:30:00Z", "2029-02-28T18:30:00Z"]


@pytest.mark.parametrize("frequency", ["none", "weeks"])
async def test_what_does_not_recur_or_was_cancelled_is_not_continued(service: Service, frequency: str) -> None:
    ada = await service.organizer()
    event = await past(service, ada, recurrence_frequency=frequency)
    if frequency != "none":
        await ada.delete(f"/api/events/{event['id']}")

    assert await goes_on(service) == 0
    assert len(await all_events(ada)) == 1


async def test_a_series_ends_with_the_occurrence_that_is_cancelled(service: Service) -> None:
    ada = await service.organizer()
    await past(service, ada)
    await goes_on(service)
    [_, next_one] = await all_events(ada)
    await ada.delete(f"/api/events/{next_one['id']}")

    assert await goes_on(service, EVENING.replace(year=2100)) == 0


async def test_a_series_that_the_calendar_ends_is_looked_at_once(service: Service) -> None:
    ada = await service.organizer()
    await past(service, ada, recurrence_frequency="years", recurrence_interval=10_000)

    assert await goes_on(service) == 1
    assert await goes_on(service) == 0
    assert len(await all_events(ada)) == 1


async def test_another_date_starts_the_count_anew(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    tuesday = datetime(2027, 2, 2, 19, tzinfo=UTC)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": tuesday.isoformat()}})

    await goes_on(service, tuesday)

    assert (await all_events(ada))[-1]["datetime"] == "2027-03-02T19:00:00Z"


@pytest.mark.parametrize(
    ("change", "then"),
    [
        ({"recurrence_frequency": "weeks"}, "2027-03-07"),
        ({"recurrence_interval": 2}, "2027-04-28"),
        ({"title": "Portraits", "capacity": 50, "recurrence_interval": 0}, "2027-03-31"),
    ],
)
async def test_another_rhythm_starts_the_count_anew_and_nothing_else_does(
    service: Service, change: dict[str, Any], then: str
) -> None:
    ada = await service.organizer()
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="months")
    await goes_on(service, EVENING)
    [_, february] = await all_events(ada)

    await ada.patch(f"/api/events/{february['id']}", {"event": change})
    await goes_on(service, datetime(2027, 2, 28, 18, 30, tzinfo=UTC))

    assert (await all_events(ada))[-1]["datetime"] == f"{then}T18:30:00Z"


async def test_an_event_that_is_put_off_after_it_was_continued_is_not_continued_again(service: Service) -> None:
    ada = await service.organizer()
    event = await past(service, ada)
    await goes_on(service)

    await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": "2090-01-01T00:00:00Z"}})

    assert await goes_on(service, datetime(2090, 1, 2, tzinfo=UTC)) == 1
    assert [each["datetime"][:4] for each in await all_events(ada)].count("2090") == 2


async def test_the_loop_continues_what_passes(service: Service) -> None:
    assert recurrence.run in jobs.LOOPS
    ada = await service.organizer()
    await past(service, ada)
    running = asyncio.create_task(recurrence.run(service.database))

    async def continued() -> bool:
        return len(await all_events(ada)) == 2

    await eventually(continued, seconds=5)
    running.cancel()


async def test_the_loop_knows_when_the_next_event_passes(service: Service) -> None:
    assert await service.database.read(recurrence.next_to_continue) is None
    ada = await service.organizer()
    [(soon,)] = await service.run_sql("select now() + interval '1 hour'")
    await ada.create_event(datetime=soon.isoformat(), recurrence_frequency="weeks")

    assert 3500 < (await service.database.read(recurrence.next_to_continue) or 0) <= 3600


# The pages of past occurrences


async def test_a_link_to_a_past_occurrence_leads_to_the_one_ahead(service: Service) -> None:
    ada = await service.organizer()
    first = await past(service, ada)
    assert await to_show(service, first["id"]) == first["id"]
    for _ in range(3):
        await goes_on(service)
        ids = [each["id"] for each in await all_events(ada)]
        assert [await to_show(service, id) for id in ids] == [ids[-1]] * len(ids)
        await service.run_sql("update events set datetime = now() where id = %(id)s", id=ids[-1])


async def test_a_link_leads_to_the_event_itself_while_that_lies_ahead_or_stands_alone(service: Service) -> None:
    ada = await service.organizer()
    ahead, alone = (
        await ada.create_event(recurrence_frequency="days"),
        await past(service, ada, recurrence_frequency="none"),
    )

    assert await to_show(service, ahead["id"]) == ahead["id"]
    assert await to_show(service, alone["id"]) == alone["id"]
    assert await to_show(service, 4711) is None


async def test_a_link_leads_to_the_occurrence_that_was_cancelled_when_there_is_none_after_it(service: Service) -> None:
    ada = await service.organizer()
    first = await past(service, ada)
    await goes_on(service)
    [_, next_one] = await all_events(ada)

    await ada.delete(f"/api/events/{next_one['id']}")

    assert await to_show(service, first["id"]) == next_one["id"]
