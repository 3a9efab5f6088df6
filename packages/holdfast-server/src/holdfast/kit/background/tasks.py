"""Background jobs, stored in the database by procrastinate. Only one process at a time runs a job.

A transaction enqueues a task (`kit/postgres/transactions.py`); a timetable starts a timed one. Both run in steps. A job
that fails is retried with exponential backoff. After its last attempt, the job of a task stays in the database until an
operator retries it (`holdfast events jobs`); that of a timed task is deleted, and the timetable starts the next one.

The worker of this process is woken by our listening connection when a job is stored, and when a delayed job is due. The
library would listen on a connection of its own, and would find a delayed job only at its next poll.
"""

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import procrastinate
import procrastinate.schema
import structlog
from msgspec import Struct
from procrastinate import JobContext, RetryStrategy
from procrastinate.connector import Notify
from procrastinate.jobs import Status
from procrastinate.manager import JobManager

from holdfast.kit.background.leases import LEASE_SECONDS, RENEW_SECONDS
from holdfast.kit.background.row_work import OVERDUE_SECONDS
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.metrics import JOBS, start_at_zero
from holdfast.kit.operations.steps import Steps
from holdfast.kit.postgres.connection_pool import KEEPALIVE, Pool
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notice
from holdfast.kit.postgres.schema.lineage import Migration, read_migrations
from holdfast.kit.postgres.transactions import JOBS_CHANNEL, TASKS_CHANNEL, EnqueuedTask, Task

log = structlog.get_logger()

RETRY_SECONDS = 1.0
"""Seconds until the worker is woken again if no worker has claimed the job that is due."""


class Connector(procrastinate.PsycopgConnector):
    """The library's access to the database. Its notifications come on the connection on which the process listens.

    wake_signal    set it to have the worker look for jobs at once
    """

    def __init__(self, database: Database[Any]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._database = database
        self.wake_signal = asyncio.Event()

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Wake the worker whenever a job is stored, until cancelled."""
        with self._database.listen(JOBS_CHANNEL, lambda _: self.wake_signal.set()):
            while True:
                await self.wake_signal.wait()
                self.wake_signal.clear()
                await on_notification(channel=JOBS_CHANNEL, payload=JOB_STORED)


JOB_STORED = '{"type": "job_inserted", "job_id": 0}'
"""What the library tells its workers when a job is stored. They only use the type."""


async def wake(database: Database[Any], wake_signal: asyncio.Event, poll_seconds: float) -> None:
    """Set `wake_signal` whenever a delayed job becomes due, until cancelled."""
    notice = asyncio.Event()
    with database.listen(TASKS_CHANNEL, lambda _: notice.set()):
        while True:
            notice.clear()
            try:
                pause = await _seconds_until_due(database, wake_signal, poll_seconds)
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("jobs that were put off are found by polls only", exc_info=error)
                pause = poll_seconds
            await wait_for_notice(notice, pause)


async def _seconds_until_due(database: Database[Any], wake_signal: asyncio.Event, poll_seconds: float) -> float:
    """Seconds until the next delayed job is due. Wakes the worker if one is due now."""
    seconds = await database.read(_next_due)
    if seconds is None:
        return poll_seconds
    if seconds > 0:
        return min(seconds, poll_seconds)
    wake_signal.set()
    return RETRY_SECONDS


async def _next_due(reader: Reader[Any]) -> float | None:
    """Seconds until the next delayed job is due; 0 or less if one is due now; None if there is none."""
    return await reader.value(
        """
        select extract(epoch from min(scheduled_at) - clock_timestamp())::float8 from procrastinate_jobs
         where status = 'todo' and scheduled_at is not null
        """
    )


A = TypeVar("A", bound=Struct)
R = TypeVar("R")


MAX_CONCURRENT_JOBS = 8
"""Jobs that one process runs concurrently. Most of them wait for other services."""

JOBS_IN_PROGRESS = Bound(
    name="Jobs in progress",
    service="both",
    total=f"{MAX_CONCURRENT_JOBS}",
    tenant="none, in order",
    address="none",
    reserved="-",
    stranger="As an organizer it delays others by its earlier jobs.",
)

CONNECTION_TIMEOUT_SECONDS = 2
"""Seconds to wait for a connection. A process that cannot reach the database waits twice before it ends."""

STALL_TIMEOUT_SECONDS = LEASE_SECONDS
"""Seconds after the last heartbeat of a process until another process runs its jobs."""

HEARTBEAT_SECONDS = RENEW_SECONDS

MAX_PERIODIC_ATTEMPTS = 4


@dataclass(frozen=True)
class TaskHandler(Generic[A]):
    """The function that runs a task.

    run         `(steps, arguments)`; it may run twice if a process is killed, so it must be idempotent
    attempts    the maximum number of attempts, with pauses of 2, 4, 8, … seconds between them
    """

    task: Task[A]
    run: Callable[[Steps[Any], A], Awaitable[None]]
    attempts: int = 10


class Schedule(NamedTuple):
    """When a task of the timetable runs, in UTC.

    cron    the same in the words of cron, with which the database stores each time
    """

    cron: str

    @classmethod
    def minutes(cls, count: int) -> "Schedule":
        """Every `count` minutes, beginning with each full hour."""
        return cls("* * * * *" if count == 1 else f"*/{count} * * * *")

    @classmethod
    def hourly(cls, minute: int) -> "Schedule":
        """Each hour at a minute."""
        return cls(f"{minute} * * * *")

    @classmethod
    def daily(cls, time: str) -> "Schedule":
        """Each day at a time, such as `03:17`."""
        return cls(f"{_in_cron(time)} * * *")

    @classmethod
    def weekly(cls, day: Literal["monday"], time: str) -> "Schedule":
        """Each week on a day at a time."""
        return cls(f"{_in_cron(time)} * * {DAYS_OF_WEEK[day]}")

    @classmethod
    def monthly(cls, day: int, time: str) -> "Schedule":
        """Each month on a day at a time."""
        return cls(f"{_in_cron(time)} {day} * *")


DAYS_OF_WEEK = {"monday": 1}


def _in_cron(time: str) -> str:
    parsed = dt.time.fromisoformat(time)
    return f"{parsed.minute} {parsed.hour}"


@dataclass(frozen=True)
class TimedTask:
    """A task that the timetable starts.

    name        the database identifies the task by it, so the name of a released task never changes
    schedule    when it runs
    run         returns the number of rows that it changed
    """

    name: str
    schedule: Schedule
    run: Callable[[Steps[Any]], Awaitable[int]]


def duplicate_names(handlers: Sequence[TaskHandler[Any]], timed: Sequence[TimedTask]) -> Sequence[str]:
    """The names that several tasks share. The database identifies tasks by name, so none of these could run."""
    names = Counter([*(handler.task.name for handler in handlers), *(task.name for task in timed)])
    return [name for name, count in names.items() if count > 1]


def in_transaction(work: Callable[[Tx[R]], Awaitable[int]]) -> Callable[[Steps[R]], Awaitable[int]]:
    """Turn work in a single transaction into the function of a timed task."""

    async def run(steps: Steps[R]) -> int:
        return await steps.transact(work)

    return run


def in_batches(work: Callable[[Tx[R]], Awaitable[int]]) -> Callable[[Steps[R]], Awaitable[int]]:
    """Turn work that handles one batch at a time into the function of a timed task, which runs until none is left.

    Each batch is its own transaction, so that none holds its locks for long or reaches the statement timeout.
    """

    async def run(steps: Steps[R]) -> int:
        total = 0
        while count := await steps.transact(work):
            total += count
        return total

    return run


def schema() -> list[Migration]:
    """The migrations of procrastinate. A later release may add files; then `migrate` applies only the new ones."""
    directory = Path(procrastinate.schema.SchemaManager.get_migrations_path())
    return [Migration(f"procrastinate {migration.name}", migration.sql) for migration in read_migrations(directory)]


async def run_tasks(database: Database[Any], handlers: Sequence[TaskHandler[Any]], timed: Sequence[TimedTask]) -> None:
    """Run tasks concurrently until cancelled."""
    connector = Connector(database)
    app = procrastinate.App(connector=connector)
    for handler in handlers:
        _register_handler(app, database, handler)
    limits = {handler.task.name: handler.attempts for handler in handlers}

    for task in timed:
        _register_timed(app, database, task)
    name = f"{database.name} jobs"
    # If the library opened its own pool, a cancellation at that moment would leave the pool open.
    pool = Pool(
        database.url,
        min_size=1,
        max_size=2,
        timeout=CONNECTION_TIMEOUT_SECONDS,
        open=False,
        check=Pool.check_connection,
        name=name,
        kwargs={"application_name": name, **KEEPALIVE},
    )
    async with pool, app.open_async(pool):
        waking = asyncio.create_task(wake(database, connector.wake_signal, POLL_SECONDS), name="waking")
        retrying = asyncio.create_task(_retry_stalled_jobs(database, app.job_manager, limits), name="stalled jobs")
        try:
            await app.run_worker_async(
                install_signal_handlers=False,
                delete_jobs="successful",
                concurrency=MAX_CONCURRENT_JOBS,
                fetch_job_polling_interval=POLL_SECONDS,
                shutdown_graceful_timeout=10,
                update_heartbeat_interval=HEARTBEAT_SECONDS,
                stalled_worker_timeout=STALL_TIMEOUT_SECONDS,
            )
        finally:
            await end_tasks([waking, retrying])


async def _retry_stalled_jobs(database: Database[Any], manager: JobManager, limits: Mapping[str, int]) -> None:
    """Retry the jobs of killed processes, until cancelled. Only one process at a time retries them.

    Every process measures how long jobs wait.
    """

    async def retry_alone(tx: Tx[Any]) -> None:
        # One of two concurrent processes could treat a job as stalled that the other has just restarted.
        if await tx.value("select pg_try_advisory_xact_lock(hashtext('stalled jobs'))"):
            await retry_stalled(manager, limits)

    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        try:
            await database.transact(retry_alone)
            OVERDUE_SECONDS.labels("jobs").set(await database.read(_overdue_seconds))
        except Exception as error:
            # The database logs when it is unreachable.
            if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                log.error("jobs that a process left behind are not tried again yet", exc_info=error)


async def _overdue_seconds(reader: Reader[Any]) -> float:
    """The seconds for which the oldest waiting job has been due; 0 if none waits."""
    return await reader.value(
        """
        select greatest(0, extract(epoch from clock_timestamp() - least(
            (select min(scheduled_at) from procrastinate_jobs where status = 'todo' and scheduled_at is not null),
            -- The first stored job among those that are to be done at once.
            (select min(at) from procrastinate_events
              where job_id = (select min(id) from procrastinate_jobs
                               where status = 'todo' and scheduled_at is null)))))::float8
        """
    )


def _register_handler(app: procrastinate.App, database: Database[Any], handler: TaskHandler[Any]) -> None:
    name, task_type = handler.task.name, EnqueuedTask[handler.task.arguments]
    retries = RetryStrategy(max_attempts=handler.attempts - 1, exponential_wait=2) if handler.attempts > 1 else False
    start_at_zero(JOBS, name, "failed")

    @app.task(name=name, pass_context=True, retry=retries)
    async def run(context: JobContext, **arguments: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        enqueued = msgspec.convert(arguments, task_type)
        try:
            await handler.run(Steps(database, enqueued.tenant), enqueued.arguments)
        except Exception as error:
            _count_failure(context, handler.attempts, error)
            raise
        JOBS.labels(name, "done").inc()


def _register_timed(app: procrastinate.App, database: Database[Any], timed: TimedTask) -> None:
    name = timed.name
    retries = RetryStrategy(max_attempts=MAX_PERIODIC_ATTEMPTS - 1, exponential_wait=2)
    start_at_zero(JOBS, name, "failed")

    @app.periodic(cron=timed.schedule.cron)
    @app.task(name=name, queueing_lock=name, pass_context=True, retry=retries)
    async def run(context: JobContext, timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction]
        try:
            changed_count = await timed.run(Steps(database))
        except Exception as error:
            if _count_failure(context, MAX_PERIODIC_ATTEMPTS, error) == "retried":
                raise
            return  # the timetable starts it again
        JOBS.labels(name, "done").inc()
        # Most runs of a job that runs every minute change nothing; they are logged at the level DEBUG.
        (log.info if changed_count else log.debug)("job done", job=name, changed=changed_count)


def _count_failure(context: JobContext, attempts: int, error: Exception) -> str:
    """Count and log a failed attempt, without the arguments. Returns `retried` or `failed`."""
    name = context.job.task_name
    status = "retried" if context.job.attempts + 1 < attempts else "failed"
    log.error("job failed", job=name, id=context.job.id, outcome=status, exc_info=error)
    JOBS.labels(name, status).inc()
    return status


async def retry_stalled(manager: JobManager, limits: Mapping[str, int]) -> int:
    """Retry jobs whose process was killed, if they have attempts left. Returns the number of such jobs.

    limits    the maximum number of attempts, by task
    """
    stalled = [*await manager.get_stalled_jobs(seconds_since_heartbeat=STALL_TIMEOUT_SECONDS)]
    for job in stalled:
        log.warning("a job was left behind by its process", job=job.task_name, id=job.id, attempts=job.attempts)
        if job.attempts + 1 < limits.get(job.task_name, MAX_PERIODIC_ATTEMPTS):
            await manager.retry_job(job)
        else:
            JOBS.labels(job.task_name, "failed").inc()
            await manager.finish_job(job, Status.FAILED, delete_job=False)
    return len(stalled)


class FailedJob(NamedTuple):
    """A job that failed for good. `arguments` holds the beginning of its arguments, as JSON."""

    id: int
    task_name: str
    attempts: int
    arguments: str


MAX_LISTED_JOBS = 100
"""Failed jobs in one list."""


async def failed_jobs(manager: JobManager) -> list[FailedJob]:
    """The jobs that failed for good, newest first, at most `MAX_LISTED_JOBS`."""
    rows = await manager.connector.execute_query_all_async(
        "select id, task_name, attempts, left(args::text, 500) as arguments from procrastinate_jobs"
        " where status = 'failed' order by id desc limit %(listed)s",
        listed=MAX_LISTED_JOBS,
    )
    return [FailedJob(**row) for row in rows]


async def retry_job(manager: JobManager, id: int) -> None:
    """Retry a job that failed for good. Raises `not_found`."""
    if not await manager.list_jobs_async(id=id, status="failed"):
        raise NOT_FOUND(f"No job with the id {id} has failed.")
    await manager.retry_job_by_id_async(id, retry_at=dt.datetime.now(dt.UTC))


@asynccontextmanager
async def open_job_manager(url: str) -> AsyncGenerator[JobManager]:
    """Open the job manager of a database, for a process that runs no jobs."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
    async with procrastinate.App(connector=connector).open_async() as app:
        yield app.job_manager
