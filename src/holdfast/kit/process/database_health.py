"""The metric `holdfast_database_up`: whether the database of a service answers.

A loop asks the database, so that a database that hangs never holds up a scrape.
"""

import asyncio
from typing import Any

from prometheus_client import Gauge

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.postgres.database import Database

UP = Gauge(
    "holdfast_database_up",
    "Whether the database answers: 1, or 0.",
    ["service"],
    multiprocess_mode="livemin",
)

POLL_SECONDS = 5.0
"""Seconds between an answer of the database and the next question."""

ANSWER_TIMEOUT_SECONDS = 5.0
"""Seconds after which a database counts as away. Requests wait as long for a connection of the pool."""


async def watch_database(database: Database[Any]) -> None:
    """Ask the database again and again, and set the metric, until cancelled."""
    up = UP.labels(database.name.removeprefix("holdfast "))
    while True:
        question = asyncio.create_task(_answers(database), name="question to the database")
        try:
            await asyncio.wait([question], timeout=ANSWER_TIMEOUT_SECONDS)
            if not question.done():
                # It is not cancelled: that asks the database to cancel it, and waits for it.
                up.set(0)
            up.set(await question)
        finally:
            await end_tasks([question])
        await asyncio.sleep(POLL_SECONDS)


async def _answers(database: Database[Any]) -> bool:
    try:
        return bool(await database.read(lambda reader: reader.value("select true")))
    except Exception:
        # The database logs when it is away, and when it is back.
        return False
