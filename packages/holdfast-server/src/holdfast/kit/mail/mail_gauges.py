"""Gauges of the outbox: how many mails wait or are held, how long the oldest has waited, and the configured rate."""

from typing import Any

from prometheus_client import Gauge

from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.postgres.database import Database, Reader
from holdfast.kit.postgres.notifications import POLL_SECONDS

WAITING_MAILS = Gauge("holdfast_mails_waiting", "Mails that wait to be sent.", multiprocess_mode="mostrecent")

OLDEST_MAIL_SECONDS = Gauge(
    "holdfast_mails_oldest_seconds",
    "How long the oldest of at most 100,000 waiting mails has waited.",
    multiprocess_mode="mostrecent",
)

HELD_MAILS = Gauge("holdfast_mails_held", "Mails that may not be sent yet.", multiprocess_mode="mostrecent")

MAX_PER_SECOND = Gauge(
    "holdfast_mails_max_per_second",
    "Mails a second that all processes may send (SMTP_MAX_PER_SECOND). 0: no limit.",
    multiprocess_mode="mostrecent",
)

MAX_COUNTED_MAILS = 100_000
"""Waiting or held mails up to which they are counted, and the oldest is found."""


async def update_gauges(reader: Reader[Any]) -> None:
    """Update the gauges."""
    [(waiting_count, oldest)] = await reader.tuples(
        """
        select count(*), coalesce(extract(epoch from now() - min(coalesce(released_at, inserted_at))), 0)::float8
          from (select inserted_at, released_at from mails where ended_at is null and hold is null
                 limit %(counted)s) as waiting
        """,
        {"counted": MAX_COUNTED_MAILS},
    )
    held_count: int = await reader.value(
        """
        select count(*) from (select from mails where ended_at is null and hold is not null limit %(counted)s) as held
        """,
        {"counted": MAX_COUNTED_MAILS},
    )
    WAITING_MAILS.set(waiting_count)
    OLDEST_MAIL_SECONDS.set(oldest)
    HELD_MAILS.set(held_count)


async def _measure(database: Database[Any], _: RowWaiters) -> float:
    """Update the gauges. Returns the seconds until the next time."""
    await database.read(update_gauges)
    MAX_PER_SECOND.set(database.resources.settings.smtp_max_per_second)
    return POLL_SECONDS


MEASURE = Loop("outbox.measure", _measure, gauges=(WAITING_MAILS, OLDEST_MAIL_SECONDS, HELD_MAILS, MAX_PER_SECOND))
