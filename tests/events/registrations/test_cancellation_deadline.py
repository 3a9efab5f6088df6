"""Until when people can cancel their own registration."""

from datetime import UTC, datetime, timedelta

from holdfast.events.registrations.model import cancellation_deadline

BEGINS = datetime(2027, 5, 1, 18, tzinfo=UTC)
DAY = timedelta(hours=24)


def test_without_hours_people_cancel_until_the_event_begins() -> None:
    assert cancellation_deadline("registered", BEGINS, 0, None) == BEGINS


def test_a_limit_in_hours_ends_cancelling_that_long_before_the_event() -> None:
    assert cancellation_deadline("registered", BEGINS, 24, None) == BEGINS - DAY


def test_a_person_promoted_before_the_deadline_has_the_usual_deadline() -> None:
    assert cancellation_deadline("registered", BEGINS, 24, BEGINS - DAY) == BEGINS - DAY


def test_a_person_promoted_after_the_deadline_can_cancel_until_the_event_begins() -> None:
    assert cancellation_deadline("registered", BEGINS, 24, BEGINS - DAY + timedelta(microseconds=1)) == BEGINS


def test_a_place_on_the_waiting_list_is_cancelled_until_the_event_begins() -> None:
    assert cancellation_deadline("waitlisted", BEGINS, 24, None) == BEGINS
