"""Wakes those who do jobs when one is due that was to be done later: by themselves they would only find it on patrol.

A job that is to be done at once wakes them when it is stored; the job library sees to that.
"""

import asyncio
from typing import Any

import structlog

from holdfast.kit.database import Database, Reader
from holdfast.kit.notifications import notified
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.tasks import CHANNEL

log = structlog.get_logger()

AGAIN_SECONDS = 1.0
"""Seconds until those who do jobs are woken again, if nobody has taken what is due."""


async def wake(database: Database[Any], patrol_seconds: float) -> None:
    """Wake them whenever a job becomes due, until cancelled."""
    changed = asyncio.Event()
    with database.listen(CHANNEL, lambda _: changed.set()):
        while True:
            changed.clear()
            try:
                pause = await _pause(database, patrol_seconds)
            except Exception as error:
                # The database logs when it is away.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("jobs that were put off are found on patrol only", exc_info=error)
                pause = patrol_seconds
            await notified(changed, pause)


async def _pause(database: Database[Any], patrol_seconds: float) -> float:
    """Seconds until there is something to be done here; before that, wake them if there is now."""
    soon = await database.read(_next_due)
    if soon is None:
        return patrol_seconds
    if soon > 0:
        return min(soon, patrol_seconds)
    await database.read(_tell)
    return AGAIN_SECONDS


async def _next_due(reader: Reader[Any]) -> float | None:
    """Seconds until the next job is due that was to be done later; 0 or less if one is due; None if there is none."""
    return await reader.value(
        """
        select extract(epoch from min(scheduled_at) - clock_timestamp())::float8 from procrastinate_jobs
         where status = 'todo' and scheduled_at is not null
        """
    )


async def _tell(reader: Reader[Any]) -> None:
    """Say what the job library says when a job is stored."""
    await reader.value("""select pg_notify('procrastinate_any_queue_v1', '{"type": "job_inserted", "job_id": 0}')""")
