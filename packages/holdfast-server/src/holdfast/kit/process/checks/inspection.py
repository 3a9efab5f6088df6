"""What a check may use to inspect a service, which it cannot change, and the findings that it collects."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

import psycopg
from psycopg import AsyncConnection

from holdfast.kit.background.leaders import SESSION_TIMEOUT_SECONDS
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import CannotRun
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy, remedy_at_server
from holdfast.kit.postgres.connection_pool import KEEPALIVE
from holdfast.kit.postgres.database import OpenConnection, Reader
from holdfast.kit.postgres.notifications import LISTENERS, listeners
from holdfast.kit.process.database_location import location_text
from holdfast.kit.process.resources import secret_file
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.service_secret import Secret, secret
from holdfast_verify.terminal import sentences

S = TypeVar("S", bound=Settings)

CHECK_TIMEOUT_SECONDS = 10.0
"""Seconds that one check may take."""

START_TIMEOUT_SECONDS = 30.0
"""Seconds that the bundled PostgreSQL may take to start, if it does not run."""

CheckStatus = Literal["ok", "warning", "wrong", "skipped"]


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    message    what is so, or what is wrong
    remedy     what to do, with the command or the setting; empty if there is nothing to do
    """

    status: CheckStatus
    message: str
    remedy: str = ""
    point: str = ""
    service: str = ""


@dataclass(frozen=True)
class CheckLimits:
    """From when on something is wrong, or a warning.

    min_free_bytes     free space of a disk, below which it is wrong; below five times as much it is a warning
    max_idle_seconds   how long a leader may run no statement; each runs at least one a second
    """

    min_free_bytes: int = 200_000_000
    max_idle_seconds: float = 3 * SESSION_TIMEOUT_SECONDS


class DatabaseUnreachable(Exception):
    """A check needs the database, which cannot be reached."""


async def _refuse_connection() -> OpenConnection:
    raise DatabaseUnreachable


@dataclass(frozen=True)
class Inspection(Generic[S]):
    """What a check may use to inspect one service. Each check gets a copy, with findings of its own.

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

    def add(self, status: CheckStatus, message: str, remedy: str = "") -> None:
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
            async with replace(inspection, url=url).connection() as open_connection:
                cursor = await open_connection.connection.execute(LISTENERS, listeners(f"holdfast {process.name}"))
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


def _explain_outage(error: Exception, inspection: Inspection[Any]) -> None:
    settings, variable = inspection.settings, inspection.variable("database_url")
    if settings.database_url:
        inspection.wrong(
            f"The database that {variable} names cannot be used: {connection_failure(error)}.",
            connection_remedy(error, variable),
        )
        return
    reason = failure_reason(error) if isinstance(error, OSError) else connection_failure(error)
    inspection.wrong(
        f"The database in the data directory {settings.data_dir.resolve()} cannot be used: {reason}.",
        remedy_at_server(error)
        or "Set HOLDFAST_DATA_DIR to the directory that the service uses, and run this as the user of the service.",
    )


def failure_reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return first_line(error)
