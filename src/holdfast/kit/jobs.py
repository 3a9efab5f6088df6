"""Background jobs, kept in the database by procrastinate: retried, run once however many processes there are."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import procrastinate
import procrastinate.schema
import structlog

from holdfast.kit.database import KEEPALIVE, Database, transacts_itself
from holdfast.kit.migrate import Migration, read

log = structlog.get_logger()


@dataclass(frozen=True)
class Periodic:
    """A job that runs by itself.

    cron    when, in UTC
    run     `(tx)`, or `(database)` where it does work elsewhere between transactions; returns how many rows it changed
    """

    cron: str
    run: Callable[[Any], Awaitable[int]]


def schema() -> list[Migration]:
    """The library's own migrations, as ours: a later release adds files, and `migrate` applies just those."""
    directory = Path(procrastinate.schema.SchemaManager.get_migrations_path())
    return [Migration(f"procrastinate {each.name}", each.sql) for each in read(directory)]


async def work(database: Database[Any], periodic: tuple[Periodic, ...]) -> None:
    """Run jobs until cancelled."""
    connector = procrastinate.PsycopgConnector(
        conninfo=database.url, min_size=1, max_size=2, kwargs={**KEEPALIVE, "application_name": f"{database.name} jobs"}
    )
    app = procrastinate.App(connector=connector)
    for job in periodic:
        _schedule(app, database, job)
    async with app.open_async():
        await app.run_worker_async(install_signal_handlers=False, delete_jobs="successful")


def _schedule(app: procrastinate.App, database: Database[Any], job: Periodic) -> None:
    @app.periodic(cron=job.cron)
    @app.task(name=job.run.__name__, queueing_lock=job.run.__name__, retry=3)
    async def run(timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction]
        changed = await (job.run(database) if transacts_itself(job.run) else database.transact(job.run))
        # One that runs each minute has nothing to tell most of the time.
        (log.info if changed else log.debug)("job done", job=job.run.__name__, changed=changed)
