"""Asks the database again and again: whether it answers, whether its clock is that of this machine, and who works.

A loop does it, so that a database that hangs never holds up a scrape of the metric.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, LiteralString, NamedTuple

import structlog
from prometheus_client import Gauge

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.postgres.database import Database

UP = Gauge(
    "holdfast_database_up",
    "Whether the database answers: 1, or 0.",
    ["service"],
    multiprocess_mode="livemin",
)

BACKGROUND_PROCESSES = Gauge(
    "holdfast_background_processes",
    "How many processes do the background work of the service, as the database had it when it answered last.",
    ["service"],
    multiprocess_mode="mostrecent",
)

POLL_SECONDS = 5.0
"""Seconds between an answer of the database and the next question."""

ANSWER_TIMEOUT_SECONDS = 5.0
"""Seconds after which a database counts as away. Requests wait as long for a connection of the pool."""

MAX_CLOCK_DIFFERENCE_SECONDS = 5.0
"""Seconds by which the clocks of this machine and of the database may differ."""

log = structlog.get_logger()


class _ClockDifference(NamedTuple):
    """By how many seconds this machine is ahead of the database, and how inexact that is."""

    seconds: float
    uncertainty: float

    @property
    def is_too_much(self) -> bool:
        return abs(self.seconds) - self.uncertainty > MAX_CLOCK_DIFFERENCE_SECONDS


class _Answer(NamedTuple):
    """What the database said."""

    background_processes: int
    difference: _ClockDifference


async def watch_database(database: Database[Any], clock: Callable[[], float] = time.time) -> None:
    """Set the metrics, and log clocks that differ, until cancelled.

    clock    the clock of this machine: seconds since 1970
    """
    service = database.name.removeprefix("holdfast ")
    up = UP.labels(service)
    was_too_much = False
    while True:
        question = asyncio.create_task(_ask(database, clock), name="question to the database")
        try:
            await asyncio.wait([question], timeout=ANSWER_TIMEOUT_SECONDS)
            if not question.done():
                # It is not cancelled: that asks the database to cancel it, and waits for it.
                up.set(0)
            answer = await question
        finally:
            await end_tasks([question])
        up.set(answer is not None)
        if answer:
            BACKGROUND_PROCESSES.labels(service).set(answer.background_processes)
        if answer and answer.difference.is_too_much != was_too_much:
            was_too_much = answer.difference.is_too_much
            _log_clocks(answer.difference)
        await asyncio.sleep(POLL_SECONDS)


def _log_clocks(difference: _ClockDifference) -> None:
    if difference.is_too_much:
        log.warning(
            "the clocks of this machine and of the database differ; set both by NTP: timedatectl set-ntp true",
            seconds_ahead=round(difference.seconds, 1),
        )
    else:
        log.warning("the clocks of this machine and of the database agree again")


async def _ask(database: Database[Any], clock: Callable[[], float]) -> _Answer | None:
    """What the database says; None if it does not answer."""
    sent_at = clock()
    try:
        [(now, background_processes)] = await database.read(
            lambda reader: reader.tuples(CLOCK_AND_LEADERS, {"name": f"{database.name} leaders %"})
        )
    except Exception:
        # The database logs when it is away, and when it is back.
        return None
    answered_at = clock()
    difference = _ClockDifference((sent_at + answered_at) / 2 - now, (answered_at - sent_at) / 2)
    return _Answer(background_processes, difference)


CLOCK_AND_LEADERS: LiteralString = """
    select extract(epoch from clock_timestamp())::float8,
           (select count(*) from pg_stat_activity
             where datname = current_database() and application_name like %(name)s)
"""
"""The time of the database, and how many processes have a session of leaders (`kit/background/leaders.py`)."""
