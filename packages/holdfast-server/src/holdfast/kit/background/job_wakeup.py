"""Wakes the job workers when a delayed job is due: by themselves they would find it only at their next poll.

A job without a delay wakes them when it is stored; the job library does that.
"""

import asyncio
from typing import Any

import structlog

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.database import Database, Reader
from holdfast.kit.postgres.notifications import wait_for_notification
from holdfast.kit.postgres.tasks import CHANNEL

log = structlog.get_logger()

RETRY_SECONDS = 1.0
"""Seconds until the workers are woken again if no worker has claimed the job that is due."""


async def wake(database: Database[Any], patrol_seconds: float) -> None:
    """Wake the workers whenever a delayed job becomes due, until cancelled."""
    changed = asyncio.Event()
    with database.listen(CHANNEL, lambda _: changed.set()):
        while True:
            changed.clear()
            try:
                pause = await _seconds_until_due(database, patrol_seconds)
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("jobs that were put off are found on patrol only", exc_info=error)
                pause = patrol_seconds
            await wait_for_notification(changed, pause)


async def _seconds_until_due(database: Database[Any], patrol_seconds: float) -> float:
    """Seconds until the next delayed job is due. Wakes the workers if one is due now."""
    soon = await database.read(_next_due)
    if soon is None:
        return patrol_seconds
    if soon > 0:
        return min(soon, patrol_seconds)
    await database.read(_notify_workers)
    return RETRY_SECONDS


async def _next_due(reader: Reader[Any]) -> float | None:
    """Seconds until the next delayed job is due; 0 or less if one is due now; None if there is none."""
    return await reader.value(
        """
        select extract(epoch from min(scheduled_at) - clock_timestamp())::float8 from procrastinate_jobs
         where status = 'todo' and scheduled_at is not null
        """
    )


async def _notify_workers(reader: Reader[Any]) -> None:
    """Send the notification that the job library sends when a job is stored."""
    await reader.value("""select pg_notify('procrastinate_any_queue_v1', '{"type": "job_inserted", "job_id": 0}')""")
