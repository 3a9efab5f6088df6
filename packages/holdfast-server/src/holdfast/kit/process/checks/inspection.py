"""Looks at a service without changing it: runs its checks, each with a time limit, and collects their findings.

Words of findings: durations and lists.

What a check has found, and from when on something is wrong.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, errors, sql
from psycopg.rows import AsyncRowFactory

from holdfast.kit.background.leaders import SESSION_TIMEOUT_SECONDS
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import CannotRun
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy, remedy_at_server
from holdfast.kit.postgres.connection_pool import KEEPALIVE
from holdfast.kit.postgres.database import Reader
from holdfast.kit.postgres.notifications import MACHINE, listener_name
from holdfast.kit.process.database_health import MAX_CLOCK_DIFFERENCE_SECONDS
from holdfast.kit.process.database_location import location_text
from holdfast.kit.process.resources import secret_file
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secrets import Secret, secret
from holdfast_verify.terminal import sentences


def duration(seconds: float) -> str:
    """A duration in words, in its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length * 0.95:
            number = max(1, round(seconds / length))
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds:.0f} seconds"


Status = Literal["ok", "warning", "wrong", "skipped"]


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    message    what is so, or what is wrong
    remedy     what to do, with the command or the setting; empty if there is nothing to do
    """

    status: Status
    message: str
    remedy: str = ""
    point: str = ""
    service: str = ""


Findings = Sequence[Finding]


def ok(message: str) -> Finding:
    return Finding("ok", sentences(message))


def warning(message: str, remedy: str) -> Finding:
    return Finding("warning", sentences(message), remedy)


def wrong(message: str, remedy: str) -> Finding:
    return Finding("wrong", sentences(message), remedy)


def skipped(reason: str) -> Finding:
    """A finding that a point was not looked at. `reason` follows "because"."""
    return Finding("skipped", sentences(f"Not looked at, because {reason}."))


@dataclass(frozen=True)
class CheckLimits:
    """From when on something is wrong, or a warning.

    min_free_bytes         free space of a disk, below which it is wrong; below five times as much it is a warning
    max_clock_difference   seconds between the clock of this machine and that of the database
    max_overdue_seconds    how long work that is due may wait
    max_idle_seconds       how long a leader may run no statement; each runs one a second
    max_mail_seconds       how long mails may wait
    max_backup_days        the age of the last backup
    """

    min_free_bytes: int = 200_000_000
    max_clock_difference: float = MAX_CLOCK_DIFFERENCE_SECONDS
    max_overdue_seconds: float = 60.0
    max_idle_seconds: float = 3 * SESSION_TIMEOUT_SECONDS
    max_mail_seconds: float = 900.0
    max_backup_days: float = 7.0


S = TypeVar("S", bound=Settings)
T = TypeVar("T")

CHECK_TIMEOUT_SECONDS = 10.0
"""Seconds that one check may take."""

START_TIMEOUT_SECONDS = 30.0
"""Seconds that the bundled PostgreSQL may take to start, if it does not run."""

MAX_CONCURRENT_CONNECTIONS = 2
"""Connections to the database at the same time: few may be left."""


@dataclass(frozen=True)
class Inspection(Generic[S]):
    """One service that is looked at.

    url              the URL of its database; empty: it cannot be reached
    process_count    its processes that are connected to the database; None: the database cannot be reached
    machine_count    the machines on which they run
    clock            the time of this machine, in seconds since 1970
    """

    product: ServiceProcess[S, Any]
    settings: S
    limits: CheckLimits = field(default_factory=CheckLimits)
    url: str = ""
    process_count: int | None = None
    machine_count: int = 0
    clock: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        return self.product.name

    def variable(self, setting: str) -> str:
        """The environment variable of a setting."""
        return self.settings.variable(setting)

    def secret(self) -> Secret | None:
        """The secret of the service; None if there is none. It is never created. Raises `SecretTooShort`."""
        settings = self.settings
        if not settings.secret_key and not secret_file(settings).exists():
            return None
        return secret(settings.secret_key, secret_file(settings), settings.old_secret_key, settings.service)

    @contextlib.asynccontextmanager
    async def reader(self, seconds: float = CHECK_TIMEOUT_SECONDS) -> AsyncGenerator[Reader[None]]:
        """Runs statements that only read, each for at most `seconds`."""
        async with _connected(self.url, f"holdfast {self.name} check", seconds) as connection:
            yield _CheckReader(connection)


class _CheckReader(Reader[None]):
    """Runs statements on a connection of its own. PostgreSQL refuses those that change something."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        async def connect() -> Any:
            raise AssertionError("it has a connection")

        super().__init__(None, connect)
        self._connection = connection

    async def _execute_and_wait(
        self, rows: AsyncRowFactory[T], sql: LiteralString, params: Mapping[str, Any] | None
    ) -> AsyncCursor[T]:
        cursor = self._connection.cursor(row_factory=rows)
        await cursor.execute(sql, params)
        return cursor


@contextlib.asynccontextmanager
async def _connected(url: str, name: str, seconds: float) -> AsyncGenerator[AsyncConnection[Any]]:
    connection = await AsyncConnection.connect(url, autocommit=True, application_name=name, **KEEPALIVE)
    async with connection:
        await connection.execute(
            sql.SQL("set default_transaction_read_only = on; set statement_timeout = {}; set timezone = 'UTC'").format(
                int(seconds * 1000)
            )
        )
        yield connection


@dataclass(frozen=True)
class Check:
    """One point. `run` looks at it, within `seconds`."""

    point: str
    run: Callable[[Inspection[Any]], Awaitable[Findings]]
    seconds: float = CHECK_TIMEOUT_SECONDS


@dataclass(frozen=True)
class DatabaseCheck:
    """One point that is in the database. It is not looked at if the database cannot be reached."""

    point: str
    run: Callable[[Inspection[Any], Reader[None]], Awaitable[Findings]]
    seconds: float = CHECK_TIMEOUT_SECONDS


AnyCheck = Check | DatabaseCheck


async def open_inspection(
    product: ServiceProcess[S, Any], settings: S, limits: CheckLimits | None = None
) -> tuple[Inspection[S], Finding]:
    """Reach the database of a service. Returns the inspection, and whether the database was reached."""
    inspection = Inspection(product, settings, limits or CheckLimits())
    try:
        async with asyncio.timeout(START_TIMEOUT_SECONDS):
            url = settings.database_url or await asyncio.to_thread(
                bundled.existing_database_url, settings.data_dir, settings.service
            )
            if url is None:
                return inspection, _no_database(settings)
            async with _connected(url, f"holdfast {product.name} check", CHECK_TIMEOUT_SECONDS) as connection:
                processes, machines = await _count_processes(connection, product.name)
    except (CannotRun, CannotStart) as error:
        # Their text says what to do after what is wrong.
        message, _, remedy = str(error).partition(". ")
        return inspection, wrong(
            f"{message.removesuffix('.')}.", remedy or "Look in postgres.log beside its directory."
        )
    except (psycopg.Error, OSError, TimeoutError) as error:
        return inspection, _unreachable(settings, error)
    return replace(inspection, url=url, process_count=processes, machine_count=machines), ok(
        f"It is reached: {location_text(settings)}."
    )


def _no_database(settings: Settings) -> Finding:
    return wrong(
        f"There is no {settings.service} database in the data directory {settings.data_dir.resolve()}.",
        f"Set HOLDFAST_DATA_DIR to the directory that the service uses, or {settings.variable('database_url')} to "
        "its database. A new service makes its database when it is started.",
    )


def _unreachable(settings: Settings, error: Exception) -> Finding:
    if settings.database_url:
        variable = settings.variable("database_url")
        return wrong(
            f"The database that {variable} names cannot be used: {connection_failure(error)}.",
            connection_remedy(error, variable),
        )
    reason = _reason(error) if isinstance(error, OSError) else connection_failure(error)
    return wrong(
        f"The database in the data directory {settings.data_dir.resolve()} cannot be used: {reason}.",
        remedy_at_server(error)
        or "Set HOLDFAST_DATA_DIR to the directory that the service uses, and run this as the user of the service.",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return first_line(error)


async def _count_processes(connection: AsyncConnection[Any], service: str) -> tuple[int, int]:
    cursor = await connection.execute(
        "select count(*), count(distinct (application_name, client_addr)) from pg_stat_activity"
        " where datname = current_database() and application_name like %s",
        [listener_name(f"holdfast {service}", "_" * len(MACHINE))],
    )
    processes, machines = await cursor.fetchone() or (0, 0)
    return processes, machines


async def run_checks(inspection: Inspection[Any], checks: Sequence[AnyCheck]) -> list[Finding]:
    """Run checks at the same time. Returns their findings in the order of the checks."""
    connections = asyncio.Semaphore(MAX_CONCURRENT_CONNECTIONS)
    results = await asyncio.gather(*(_run(inspection, check, connections) for check in checks))
    return [
        replace(finding, point=check.point, service=inspection.name)
        for check, findings in zip(checks, results, strict=True)
        for finding in findings
    ]


async def _run(inspection: Inspection[Any], check: AnyCheck, connections: asyncio.Semaphore) -> Findings:
    if isinstance(check, Check):
        return await _within_limits(check, check.run(inspection))
    if not inspection.url:
        return [skipped("the database cannot be reached")]
    async with connections:
        return await _within_limits(check, _read(inspection, check))


async def _read(inspection: Inspection[Any], check: DatabaseCheck) -> Findings:
    async with inspection.reader(check.seconds) as reader:
        return await check.run(inspection, reader)


async def _within_limits(check: AnyCheck, work: Awaitable[Findings]) -> Findings:
    try:
        async with asyncio.timeout(check.seconds):
            return await work
    except (TimeoutError, errors.QueryCanceled):
        return [
            wrong(
                f"This took longer than {check.seconds:g} seconds.",
                "Look at the network, and at the load of what is asked here; then run the check again.",
            )
        ]
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction):
        return [skipped("the schema of the database is not that of this version; see migrations and schema")]
    except errors.InsufficientPrivilege as error:
        return [
            wrong(
                f"The user of the database may not read this: {first_line(error)}.",
                "Let the user that made the tables be the user in the URL of the database.",
            )
        ]
    except OSError as error:
        return [wrong(f"This could not be looked at: {_reason(error)}.", "Run the check as the user of the service.")]
    except Exception as error:
        # One check that fails must not hide the others.
        return [wrong(f"This could not be looked at: {first_line(error)}.", "Run the check again; see its message.")]
