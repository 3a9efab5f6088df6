"""The dates of a series are counted from its first one, across months of any length and changes of the clock."""

import calendar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.events.model import Frequency
from holdfast.events.events.recurrence import next_occurrence_at
from tests.events.events.series import EVENING, dates

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))
FREQUENCIES: list[Frequency] = ["days", "weeks", "months", "years"]


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
    assert (
        next_occurrence_at(datetime(9999, 12, 31, tzinfo=UTC), frequency, 1, datetime(9999, 12, 31, 1, tzinfo=UTC))
        is None
    )
    assert next_occurrence_at(datetime(2027, 1, 31, tzinfo=UTC), frequency, 10_000_000, EVENING) is None


@given(
    start=MOMENTS,
    later=MOMENTS,
    frequency=st.sampled_from(FREQUENCIES),
    interval=st.integers(0, 40),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Caracas", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_the_next_date_is_the_first_one_ahead_of_all_those_counted_from_the_start(
    start: datetime, later: datetime, frequency: Frequency, interval: int, zone: str
) -> None:
    start, after = sorted((start, later))
    next_date = next_occurrence_at(start, frequency, interval, after, ZoneInfo(zone))
    assert next_date

    # Count along the series, which is what "counted from the first date" means.
    every = max(1, interval)
    date, count = start, 0
    while date <= after:
        count += 1
        date = moment_after(start, frequency, every * count, ZoneInfo(zone))
    assert next_date == (date if count else moment_after(start, frequency, every, ZoneInfo(zone)))


def moment_after(start: datetime, frequency: Frequency, count: int, zone: ZoneInfo) -> datetime:
    """The moment `count` days, weeks, months or years after the start by the clocks of a zone, the slow way."""
    local = start.astimezone(zone).replace(tzinfo=None)
    match frequency:
        case "months" | "years":
            year, month = local.year, local.month
            for _ in range(count * (12 if frequency == "years" else 1)):
                year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            moved = local.replace(year=year, month=month, day=min(local.day, calendar.monthrange(year, month)[1]))
        case "weeks":
            moved = local + timedelta(weeks=count)
        case _:
            moved = local + timedelta(days=count)
    return moved.replace(tzinfo=zone, fold=0).astimezone(UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "after", "expected"),
    [
        # 19:00 in Berlin is 18:00 in UTC in winter and 17:00 in summer.
        ("2027-03-22T18:00", "2027-03-22T18:00", "2027-03-29T17:00"),
        ("2027-10-25T17:00", "2027-10-25T17:00", "2027-11-01T18:00"),
        ("2027-03-22T18:00", "2028-11-01T00:00", "2028-11-06T18:00"),
        # 02:30 does not exist there on the day on which the clocks are put forward.
        ("2027-03-21T01:30", "2027-03-21T01:30", "2027-03-28T01:30"),
        ("2027-03-21T01:30", "2027-03-28T01:30", "2027-04-04T00:30"),
    ],
)
def test_a_weekly_event_takes_place_at_the_same_time_of_its_zone_in_summer_and_in_winter(
    start: str, after: str, expected: str
) -> None:
    assert next_occurrence_at(utc(start), "weeks", 1, utc(after), ZoneInfo("Europe/Berlin")) == utc(expected)


def test_the_end_of_a_month_is_that_of_the_zone() -> None:
    # The last evening of January in New York is in February in UTC.
    assert next_occurrence_at(
        utc("2027-02-01T01:00"), "months", 1, utc("2027-02-01T01:00"), ZoneInfo("America/New_York")
    ) == utc("2027-03-01T01:00")
