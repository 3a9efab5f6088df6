"""The texts of entries are the same for the same facts."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast_verify.formats.entries import timestamp

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30)), timezone(timedelta(hours=2))])


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30), timezones=ZONES))
@example(datetime(2026, 11, 26, 13, 0, tzinfo=UTC))
def test_a_timestamp_of_an_entry_is_in_utc_with_microseconds(at: datetime) -> None:
    text = timestamp(at)

    assert (len(text), text[-1]) == (27, "Z")
    assert datetime.fromisoformat(text) == at
