"""Looks at a service without changing it: runs its checks, each with a time limit, and collects their findings.

A check is a function of an `Inspection`, or a query. What it finds to be in order counts if it finds nothing else.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from string import Formatter
from typing import Any, Generic, Literal, LiteralString, NamedTuple, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, errors

from holdfast.kit.background.leaders import SESSION_TIMEOUT_SECONDS
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import CannotRun
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy, remedy_at_server
from holdfast.kit.postgres.connection_pool import KEEPALIVE
from holdfast.kit.postgres.database import OpenConnection, Reader
from holdfast.kit.postgres.notifications import MACHINE, listener_name
from holdfast.kit.process.database_location import location_text
from holdfast.kit.process.resources import secret_file
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secrets import Secret, secret
from holdfast_verify.terminal import names_text, sentences

S = TypeVar("S", bound=Settings)

CHECK_TIMEOUT_SECONDS = 10.0
"""Seconds that one check may take."""

START_TIMEOUT_SECONDS = 30.0
"""Seconds that the bundled PostgreSQL may take to start, if it does not run."""

MAX_CONCURRENT_CONNECTIONS = 2
"""Connections to the database at the same time: few may be left."""

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


@dataclass(frozen=True)
class CheckLimits:
    """From when on something is wrong, or a warning.

    min_free_bytes     free space of a disk, below which it is wrong; below five times as much it is a warning
    max_idle_seconds   how long a leader may run no statement; each runs one a second
    """

    min_free_bytes: int = 200_000_000
    max_idle_seconds: float = 3 * SESSION_TIMEOUT_SECONDS


class DatabaseUnreachable(Exception):
    """A check needs the database, which cannot be reached."""


async def _refuse_connection() -> OpenConnection:
    raise DatabaseUnreachable


@dataclass(frozen=True)
class Inspection(Generic[S]):
    """One service that is looked at. Each check has one of its own.

    url              the URL of its database; empty: it cannot be reached
    process_count    its processes that are connected to the database; None: the database cannot be reached
    machine_count    the machines on which they run
    clock            the time of this machine, in seconds since 1970
    database         runs statements on a connection that the first of them opens; PostgreSQL refuses changes
    findings         what the check has found so far
    """

    process: ServiceProcess[S, Any]
    settings: S
    limits: CheckLimits = field(default_factory=CheckLimits)
    url: str = ""
    process_count: int | None = None
    machine_count: int = 0
    clock: Callable[[], float] = time.time
    database: Reader[None] = Reader(None, _refuse_connection)  # noqa: RUF009 - it only refuses
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def has_tenants(self) -> bool:
        return self.process.tenancy is not None

    def variable(self, setting: str) -> str:
        """The environment variable of a setting."""
        return self.settings.variable(setting)

    def secret(self) -> Secret | None:
        """The secret of the service; None if there is none. It is never created. Raises `SecretTooShort`."""
        settings = self.settings
        if not settings.secret_key and not secret_file(settings).exists():
            return None
        return secret(settings.secret_key, secret_file(settings), settings.old_secret_key, settings.service)

    def add(self, status: Status, message: str, remedy: str = "") -> None:
        self.findings.append(Finding(status, sentences(message), remedy))

    def ok(self, message: str) -> None:
        self.add("ok", message)

    def warning(self, message: str, remedy: str) -> None:
        self.add("warning", message, remedy)

    def wrong(self, message: str, remedy: str) -> None:
        self.add("wrong", message, remedy)

    def skipped(self, reason: str) -> None:
        """Tell that the point was not looked at. `reason` follows "because"."""
        self.add("skipped", f"Not looked at, because {reason}.")

    @contextlib.asynccontextmanager
    async def connection(self, seconds: float = CHECK_TIMEOUT_SECONDS) -> AsyncGenerator[OpenConnection]:
        """A connection on which PostgreSQL refuses changes, and ends statements that take longer than `seconds`."""
        # In a database with the encoding SQL_ASCII, psycopg would read texts as bytes.
        options: dict[str, Any] = {**KEEPALIVE, "autocommit": True, "client_encoding": "UTF8"}
        name = f"holdfast {self.name} check"
        async with await AsyncConnection.connect(self.url, application_name=name, **options) as connection:
            await connection.execute("set default_transaction_read_only = on; set timezone = 'UTC'")
            await connection.execute("select set_config('statement_timeout', %s, false)", [f"{seconds * 1000:.0f}"])
            yield OpenConnection(connection, None)


Run = Callable[[Inspection[Any]], Awaitable[None]]


@dataclass(frozen=True)
class Check:
    """Looks at a point of a service, within `seconds`."""

    point: str
    run: Run
    seconds: float


class Fault(NamedTuple):
    """What is said of each row of a query for which a condition holds."""

    condition: LiteralString
    message: str
    remedy: str
    status: Status = "wrong"


@dataclass(frozen=True)
class FaultQuery:
    """Looks at a point of a service with a query.

    sql       its parameters are attributes of the inspection or of the settings
    faults    what is said of its rows; the sentences have columns as fields
    ok        what is said if there is no fault; its fields are columns of the first row
    """

    sql: LiteralString
    faults: Sequence[Fault]
    ok: str

    def statement(self, inspection: Inspection[Any]) -> tuple[LiteralString, dict[str, Any]]:
        """The statement that finds the faults of each row, and its parameters."""
        conditions: LiteralString = ", ".join(f"({fault.condition})" for fault in self.faults)
        statement: LiteralString = f"select *, array[{conditions}] as conditions from ({self.sql}) as facts"
        names = re.findall(r"%\((\w+)\)s", statement)
        return statement, {
            name: getattr(inspection if hasattr(inspection, name) else inspection.settings, name) for name in names
        }

    async def __call__(self, inspection: Inspection[Any]) -> None:
        variables = {"service": inspection.name, "database_url": inspection.variable("database_url")}
        rows = await inspection.database.rows(dict[str, Any], *self.statement(inspection))
        for row in rows:
            for fault, is_met in zip(self.faults, row["conditions"], strict=True):
                if is_met:
                    message, remedy = (SENTENCE.format(text, **variables, **row) for text in fault[1:3])
                    inspection.add(fault.status, message, remedy)
        inspection.ok(SENTENCE.format(self.ok, **(rows or [{}])[0]))


class CheckList(list[Check]):
    """The checks of a part, in the order in which they are shown."""

    def point(self, name: str, seconds: float = CHECK_TIMEOUT_SECONDS) -> Callable[[Run], Check]:
        """Make a function a check."""

        def add(run: Run) -> Check:
            self.append(Check(name, run, seconds))
            return self[-1]

        return add

    def query(
        self, point: str, sql: LiteralString, *faults: Fault, ok: str, seconds: float = CHECK_TIMEOUT_SECONDS
    ) -> None:
        """Make a query a check."""
        self.append(Check(point, FaultQuery(sql, faults, ok), seconds))


class _Sentence(Formatter):
    """Puts columns into sentences: intervals as durations, numbers with their noun: `{count:1 mail was|mails were}`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, timedelta):
            return duration(value.total_seconds())
        if isinstance(value, list):
            return names_text(cast("list[str]", value))
        one, separator, several = format_spec.partition("|")
        if separator:
            return one if value == 1 else f"{value} {several}"
        return super().format_field(value, format_spec)


SENTENCE = _Sentence()


def duration(seconds: float) -> str:
    """A duration in words, in its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length * 0.95:
            number = max(1, round(seconds / length))
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds:.0f} seconds"


def overdue(work: str) -> tuple[Fault, Fault]:
    """The faults of work that has been due for long, by the column `age`.

    work    names the work, at the beginning of a sentence
    """
    return (
        Fault(
            "age > interval '1 minute' and %(process_count)s = 0",
            f"{work} for {{age}}. No process of the service runs.",
            "Start one: holdfast {service} serve",
            status="warning",
        ),
        Fault(
            "age > interval '1 minute' and %(process_count)s > 0",
            f"{work} for {{age}}.",
            "Look in the log of the processes for the reason. If they do no background work, start: "
            "holdfast {service} worker",
        ),
    )


async def open_inspection(
    process: ServiceProcess[S, Any], settings: S, limits: CheckLimits | None = None
) -> Inspection[S]:
    """Reach the database of a service. The inspection begins with the finding on that."""
    inspection = Inspection(process, settings, limits or CheckLimits())
    try:
        async with asyncio.timeout(START_TIMEOUT_SECONDS):
            url = settings.database_url or await asyncio.to_thread(
                bundled.existing_database_url, settings.data_dir, settings.service
            )
            if url is None:
                inspection.wrong(
                    f"There is no {settings.service} database in the data directory {settings.data_dir.resolve()}.",
                    "Set HOLDFAST_DATA_DIR to the directory that the service uses, or "
                    f"{settings.variable('database_url')} to its database. A new service makes its database when it "
                    "is started.",
                )
                return inspection
            async with replace(inspection, url=url).connection() as opened:
                listeners = listener_name(f"holdfast {process.name}", "_" * len(MACHINE))
                cursor = await opened.connection.execute(PROCESSES, [listeners])
                processes, machines = await cursor.fetchone() or (0, 0)
    except (CannotRun, CannotStart) as error:
        # Their text says what to do after what is wrong.
        message, _, remedy = str(error).partition(". ")
        inspection.wrong(message, remedy or "Look in postgres.log beside its directory.")
        return inspection
    except (psycopg.Error, OSError, TimeoutError) as error:
        _explain_outage(error, inspection)
        return inspection
    inspection.ok(f"It is reached: {location_text(settings)}.")
    return replace(inspection, url=url, process_count=processes, machine_count=machines)


PROCESSES: LiteralString = """
    select count(*), count(distinct (application_name, client_addr)) from pg_stat_activity
     where datname = current_database() and application_name like %s
"""


def _explain_outage(error: Exception, inspection: Inspection[Any]) -> None:
    settings, variable = inspection.settings, inspection.variable("database_url")
    if settings.database_url:
        inspection.wrong(
            f"The database that {variable} names cannot be used: {connection_failure(error)}.",
            connection_remedy(error, variable),
        )
        return
    reason = _reason(error) if isinstance(error, OSError) else connection_failure(error)
    inspection.wrong(
        f"The database in the data directory {settings.data_dir.resolve()} cannot be used: {reason}.",
        remedy_at_server(error)
        or "Set HOLDFAST_DATA_DIR to the directory that the service uses, and run this as the user of the service.",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return first_line(error)


async def run_checks(inspection: Inspection[S], checks: Sequence[Check]) -> list[Finding]:
    """Run checks at the same time. Returns their findings in the order of the checks."""
    connections = asyncio.Semaphore(MAX_CONCURRENT_CONNECTIONS)
    results = await asyncio.gather(*(_run(inspection, check, connections) for check in checks))
    return [
        replace(finding, point=check.point, service=inspection.name)
        for check, findings in zip(checks, results, strict=True)
        for finding in [finding for finding in findings if finding.status != "ok"] or findings
    ]


async def _run(service: Inspection[S], check: Check, connections: asyncio.Semaphore) -> list[Finding]:
    limit = asyncio.timeout(check.seconds)
    async with contextlib.AsyncExitStack() as stack:

        async def connect() -> OpenConnection:
            # Other checks may take long: the time of this one begins when it may connect.
            limit.reschedule(None)
            await stack.enter_async_context(connections)
            limit.reschedule(asyncio.get_running_loop().time() + check.seconds)
            return await stack.enter_async_context(service.connection(check.seconds))

        database = Reader(None, connect) if service.url else service.database
        inspection = replace(service, database=database, findings=[])
        try:
            async with limit:
                await check.run(inspection)
        except Exception as error:
            # One check that fails must not hide the others.
            inspection.findings.clear()
            _explain(error, inspection, check)
        return inspection.findings


def _explain(error: Exception, inspection: Inspection[Any], check: Check) -> None:
    match error:
        case DatabaseUnreachable():
            inspection.skipped("the database cannot be reached")
        case TimeoutError() | errors.QueryCanceled():
            inspection.wrong(
                f"This took longer than {check.seconds:g} seconds.",
                "Look at the network, and at the load of what is asked here; then run the check again.",
            )
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.UndefinedFunction():
            inspection.skipped("the schema of the database is not that of this version; see migrations and schema")
        case errors.InsufficientPrivilege():
            inspection.wrong(
                f"The user of the database may not read this: {first_line(error)}.",
                "Let the user that made the tables be the user in the URL of the database.",
            )
        case _:
            is_file = isinstance(error, OSError)
            remedy = "Run the check as the user of the service." if is_file else "Run the check again; see its message."
            inspection.wrong(f"This could not be looked at: {_reason(error)}.", remedy)
