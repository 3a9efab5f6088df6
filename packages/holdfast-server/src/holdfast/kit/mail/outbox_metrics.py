"""Metrics of the outbox: results of mails, and the numbers of waiting and held mails."""

from typing import Any

from prometheus_client import Counter, Gauge

from holdfast.kit.postgres.database import Reader

MAILS = Counter("holdfast_mails", "Mails that ended, or were put off by the mail server.", ["outcome"])
WAITING = Gauge("holdfast_mails_waiting", "Mails that wait to be sent.", multiprocess_mode="mostrecent")
OLDEST = Gauge("holdfast_mails_oldest_seconds", "How long the oldest of them waits.", multiprocess_mode="mostrecent")
HELD = Gauge("holdfast_mails_held", "Mails that may not be sent yet.", multiprocess_mode="mostrecent")

MAX_COUNTED_MAILS = 100_000
"""Waiting or held mails up to which they are counted."""


async def update_gauges(reader: Reader[Any]) -> None:
    """Update the gauges."""
    [(waiting, oldest)] = await reader.tuples(
        """
        select count(*), coalesce(extract(epoch from now() - min(coalesce(released_at, inserted_at))), 0)::float8
          from (select inserted_at, released_at from mails where ended_at is null and hold is null
                 limit %(counted)s) as waiting
        """,
        {"counted": MAX_COUNTED_MAILS},
    )
    held: int = await reader.value(
        """
        select count(*) from (select from mails where ended_at is null and hold is not null limit %(counted)s) as held
        """,
        {"counted": MAX_COUNTED_MAILS},
    )
    WAITING.set(waiting)
    OLDEST.set(oldest)
    HELD.set(held)


def reset_gauges() -> None:
    """Set the gauges to 0: another process updates them from now on."""
    for gauge in (WAITING, OLDEST, HELD):
        gauge.set(0)
