"""Background jobs, stored in the database by procrastinate. Only one process at a time runs a job.

A transaction enqueues a task (`tasks.py`); a periodic job is started by its timetable. Both run in steps. A job that
fails is tried again after growing pauses. A job that failed for good stays in the database until an operator tries it
again: `holdfast events jobs`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import procrastinate
import procrastinate.schema
import structlog
from msgspec import Struct
from procrastinate import JobContext, RetryStrategy
from procrastinate.jobs import Status
from procrastinate.manager import JobManager

from holdfast.kit.database import Database, Tx
from holdfast.kit.ending import end
from holdfast.kit.metrics import JOBS, begin
from holdfast.kit.migrate import Migration, read
from holdfast.kit.pool import KEEPALIVE, Pool
from holdfast.kit.problems import NOT_FOUND
from holdfast.kit.steps import Steps
from holdfast.kit.tasks import FUNCTION, Enqueued, Task
from holdfast.kit.waking import wake

A = TypeVar("A", bound=Struct)
R = TypeVar("R")

log = structlog.get_logger()

AT_ONCE = 8
"""The most jobs that run at once in one process: most of them wait for other services."""

PATIENCE = 2
"""Seconds to wait for a connection. A process whose database is away waits for it twice before it ends."""

PATROL_SECONDS = 5.0
"""Seconds after which jobs are looked for anyway, in case a notification was lost."""

PERIODIC_ATTEMPTS = 4


@dataclass(frozen=True)
class Job(Generic[A]):
    """The function that does a task.

    run         `(steps, arguments)`; it may run twice if a process is killed, so running it twice must do no harm
    attempts    how often it is tried, with pauses of 2, 4, 8, … seconds between the attempts
    """

    task: Task[A]
    run: Callable[[Steps[Any], A], Awaitable[None]]
    attempts: int = 10


@dataclass(frozen=True)
class Periodic:
    """A job that is started by a timetable.

    cron    when it runs, in UTC
    run     returns how many rows it changed
    """

    cron: str
    run: Callable[[Steps[Any]], Awaitable[int]]

    @property
    def name(self) -> str:
        """That of the function, which the database knows it by."""
        return self.run.__name__


def named_twice(jobs: Sequence[Job[Any]], periodic: Sequence[Periodic]) -> Sequence[str]:
    """The names that several jobs have. The database knows jobs by their names, so none of them could run."""
    names = Counter([*(job.task.name for job in jobs), *(each.name for each in periodic)])
    return [name for name, count in names.items() if count > 1]


def in_transaction(work: Callable[[Tx[R]], Awaitable[int]]) -> Callable[[Steps[R]], Awaitable[int]]:
    """Turn work in a single transaction into the function of a periodic job."""

    @wraps(work)
    async def run(steps: Steps[R]) -> int:
        return await steps.transact(work)

    return run


def in_portions(work: Callable[[Tx[R]], Awaitable[int]]) -> Callable[[Steps[R]], Awaitable[int]]:
    """Turn work that does a portion at a time into the function of a periodic job, which goes on until nothing is left.

    Each portion is a transaction of its own, so that none holds its locks for long or meets the statement timeout.
    """

    @wraps(work)
    async def run(steps: Steps[R]) -> int:
        total = 0
        while done := await steps.transact(work):
            total += done
        return total

    return run


def schema() -> list[Migration]:
    """The migrations of procrastinate. A later release may add files; `migrate` then applies only the new ones."""
    directory = Path(procrastinate.schema.SchemaManager.get_migrations_path())
    return [
        *(Migration(f"procrastinate {each.name}", each.sql) for each in read(directory)),
        Migration("enqueue_task", FUNCTION),
    ]


async def work(database: Database[Any], jobs: Sequence[Job[Any]], periodic: Sequence[Periodic]) -> None:
    """Run jobs until cancelled, several at once."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector())
    for job in jobs:
        _offer(app, database, job)
    limits = {job.task.name: job.attempts for job in jobs}

    async def retry_stalled_jobs(_: Steps[Any]) -> int:
        return await retry_stalled(app.job_manager, limits)

    for each in (*periodic, Periodic("* * * * *", retry_stalled_jobs)):
        _schedule(app, database, each)
    name = f"{database.name} jobs"
    # The library would leave a pool of its own open when it is cancelled while it opens it.
    pool = Pool(
        database.url,
        min_size=1,
        max_size=2,
        timeout=PATIENCE,
        open=False,
        check=Pool.check_connection,
        name=name,
        kwargs={"application_name": name, **KEEPALIVE},
    )
    async with pool, app.open_async(pool):
        waking = asyncio.create_task(wake(database, PATROL_SECONDS), name="waking")
        try:
            await app.run_worker_async(
                install_signal_handlers=False,
                delete_jobs="successful",
                concurrency=AT_ONCE,
                fetch_job_polling_interval=PATROL_SECONDS,
                shutdown_graceful_timeout=10,
            )
        finally:
            await end([waking])


def _offer(app: procrastinate.App, database: Database[Any], job: Job[Any]) -> None:
    name, stored = job.task.name, Enqueued[job.task.arguments]
    retries = RetryStrategy(max_attempts=job.attempts - 1, exponential_wait=2) if job.attempts > 1 else False
    begin(JOBS, name, "failed")

    @app.task(name=name, pass_context=True, retry=retries)
    async def run(context: JobContext, **arguments: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        enqueued = msgspec.convert(arguments, stored)
        try:
            await job.run(Steps(database, enqueued.tenant), enqueued.arguments)
        except Exception as error:
            _count_failure(context, job.attempts, error)
            raise
        JOBS.labels(name, "done").inc()


def _schedule(app: procrastinate.App, database: Database[Any], periodic: Periodic) -> None:
    name = periodic.name
    begin(JOBS, name, "failed")

    @app.periodic(cron=periodic.cron)
    @app.task(name=name, queueing_lock=name, pass_context=True, retry=PERIODIC_ATTEMPTS - 1)
    async def run(context: JobContext, timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction]
        try:
            changed = await periodic.run(Steps(database))
        except Exception as error:
            if _count_failure(context, PERIODIC_ATTEMPTS, error) == "retried":
                raise
            return  # the timetable starts it again
        # A job that runs every minute mostly changes nothing, and is then logged at the level DEBUG only.
        (log.info if changed else log.debug)("job done", job=name, changed=changed)


def _count_failure(context: JobContext, attempts: int, error: Exception) -> str:
    """Count and log a failed attempt, without the arguments. Returns `retried` or `failed`."""
    name = context.job.task_name
    outcome = "retried" if context.job.attempts + 1 < attempts else "failed"
    log.error("job failed", job=name, id=context.job.id, outcome=outcome, exc_info=error)
    JOBS.labels(name, outcome).inc()
    return outcome


async def retry_stalled(manager: JobManager, limits: Mapping[str, int]) -> int:
    """Let jobs whose process was killed run again, if they have attempts left. Returns how many such jobs there were.

    limits    how often a job is tried, by task
    """
    stalled = [*await manager.get_stalled_jobs()]
    for job in stalled:
        log.warning("a job was left behind by its process", job=job.task_name, id=job.id, attempts=job.attempts)
        if job.attempts + 1 < limits.get(job.task_name, PERIODIC_ATTEMPTS):
            await manager.retry_job(job)
        else:
            JOBS.labels(job.task_name, "failed").inc()
            await manager.finish_job(job, Status.FAILED, delete_job=False)
    return len(stalled)


class FailedJob(NamedTuple):
    """A job that failed for good. `arguments` is the beginning of its arguments, as JSON."""

    id: int
    task_name: str
    attempts: int
    arguments: str


LISTED = 100
"""The most failed jobs that are listed at once."""


async def failed(manager: JobManager) -> list[FailedJob]:
    """The jobs that failed for good, the newest first, and at most `LISTED`."""
    rows = await manager.connector.execute_query_all_async(
        "select id, task_name, attempts, left(args::text, 500) as arguments from procrastinate_jobs"
        " where status = 'failed' order by id desc limit %(listed)s",
        listed=LISTED,
    )
    return [FailedJob(**row) for row in rows]


async def retry(manager: JobManager, id: int) -> None:
    """Try a job that failed for good once more. Raises `not_found`."""
    if not await manager.list_jobs_async(id=id, status="failed"):
        raise NOT_FOUND(f"No job with the id {id} has failed.")
    await manager.retry_job_by_id_async(id, retry_at=datetime.now(UTC))


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[JobManager]:
    """Open the jobs in a database, for a process that does not run them."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
    async with procrastinate.App(connector=connector).open_async() as app:
        yield app.job_manager
