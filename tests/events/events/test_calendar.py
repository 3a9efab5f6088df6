"""The dates of a series are counted from its first one, however long the months are."""

import calendar
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.events.model import Frequency
from holdfast.events.events.recurrence import following
from tests.events.events.series import EVENING, dates

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
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
