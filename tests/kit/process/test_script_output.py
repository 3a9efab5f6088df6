"""The output of commands for scripts."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast_verify.terminal import iso_time


@pytest.mark.parametrize("hours", [-5, 0, 2])
def test_a_time_is_in_utc_whatever_time_zone_the_session_of_the_database_has(hours: int) -> None:
    moment = datetime(2026, 7, 1, 12, 0, 30, 999_999, UTC)

    assert iso_time(moment.astimezone(timezone(timedelta(hours=hours)))) == "2026-07-01T12:00:30Z"
