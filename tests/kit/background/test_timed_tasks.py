"""The times of tasks, in UTC, and the names by which a database that an earlier version wrote knows them."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest
from croniter import croniter

from holdfast.events import service as events
from holdfast.inventory import service as inventory
from holdfast.kit.background.tasks import Schedule
from holdfast.kit.process.part import Part

BEGIN = dt.datetime(2026, 11, 28, 12, 0, 30, tzinfo=dt.UTC)
"""A Saturday."""


@pytest.mark.parametrize(
    ("times", "first", "second"),
    [
        (Schedule.minutes(1), "2026-11-28 12:01", "2026-11-28 12:02"),
        (Schedule.minutes(10), "2026-11-28 12:10", "2026-11-28 12:20"),
        (Schedule.hourly(23), "2026-11-28 12:23", "2026-11-28 13:23"),
        (Schedule.daily("03:17"), "2026-11-29 03:17", "2026-11-30 03:17"),
        (Schedule.weekly("monday", "04:41"), "2026-11-30 04:41", "2026-12-07 04:41"),
        (Schedule.monthly(1, "04:31"), "2026-12-01 04:31", "2027-01-01 04:31"),
    ],
)
def test_a_timed_task_runs_at_the_times_of_its_schedule(times: Schedule, first: str, second: str) -> None:
    following = croniter(times.cron, BEGIN)

    assert [f"{following.get_next(dt.datetime):%Y-%m-%d %H:%M}" for _ in range(2)] == [first, second]


def test_a_time_of_day_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="minute"):
        Schedule.daily("03:60")


EVENTS = """
    cancel_events_of_ended_organizer clear_photos file_anew forget forget_answers forget_clients forget_grants
    forget_keys forget_known forget_links forget_mails forget_registrants forget_rejections forget_sessions
    forget_tokens forget_visitors
    index_registrations report rotate_queue_keys rotate_trusted_auth_keys thin_histories tick
"""
INVENTORY = """
    forget forget_answers forget_changes forget_drawn forget_holds forget_known forget_lags forget_links forget_mails
    forget_sessions import_all import_catalog redact_forgotten redact_shop rotate subscribe_all
    subscribe_shop
"""


def names(parts: Sequence[Part[Any]]) -> set[str]:
    """The names of the tasks of a service."""
    timed = (task.name for part in parts for task in part.timed_tasks)
    return {*timed, *(handler.task.name for part in parts for handler in part.tasks)}


@pytest.mark.parametrize(
    ("parts", "released"), [(events.PARTS, EVENTS), (inventory.PARTS, INVENTORY)], ids=["events", "inventory"]
)
def test_tasks_that_a_released_version_stored_still_have_a_function(parts: Sequence[Part[Any]], released: str) -> None:
    assert {*released.split()} <= names(parts)
