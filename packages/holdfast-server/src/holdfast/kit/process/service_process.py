"""The processes of a service: settings, database migrations, sockets and workers."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, LiteralString, TypeVar

import psycopg
import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from holdfast import __version__
from holdfast.kit import webhooks
from holdfast.kit.background import tasks as jobs
from holdfast.kit.contract.problems import CannotStart, ErrorBody, Problem
from holdfast.kit.environment import logs
from holdfast.kit.environment.logs import outage_of
from holdfast.kit.environment.settings import Settings
from holdfast.kit.environment.variables import read_settings, warn_of_unknown_variables
from holdfast.kit.http.connection import Connection
from holdfast.kit.http.connection_limits import ConnectionLimits, files_for_connections
from holdfast.kit.http.sockets import BACKLOG, address_of, copies_of_socket
from holdfast.kit.mail import outbox
from holdfast.kit.operations.steps import Steps
from holdfast.kit.postgres import bundled, transactions
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.postgres.schema import migrations
from holdfast.kit.postgres.schema.functions import read_functions
from holdfast.kit.postgres.schema.lineage import Migration, MigrationError, read_migrations
from holdfast.kit.process import database_location
from holdfast.kit.process.resources import Resources, secret_of
from holdfast.kit.process.service import Service
from holdfast.kit.process.serving import (
    ServedService,
    end_with_parent,
    serve,
    signals_to_stop,
    tuned_for_serving,
)
from holdfast.kit.security.service_secret import SealedTable
from holdfast_verify.terminal import names_text

log = structlog.get_logger()

KIT_SCHEMA_FOLDERS = (
    Path(transactions.__file__).parent,
    Path(outbox.__file__).parent / "schema",
    Path(webhooks.__file__).parent / "schema",
)
"""The folders of the kit with a part of the schema: a function of tasks, and all about mails and webhooks."""

S = TypeVar("S", bound=Settings)
R = TypeVar("R", bound=Resources[Any])
T = TypeVar("T")


def _change_nothing(connection: psycopg.Connection[Any]) -> None:
    pass


@dataclass(frozen=True)
class ServiceProcess(Generic[S, R]):
    """Runs a service from the command line.

    resources       builds its resources
    build           builds the service
    schema_folders  the folders with its `migrations/`, `functions/` and `triggers/`, in the order of their migrations
    factory         the `module:function` of a worker process's application; the function calls `worker`
    tenancy         the statement by which a transaction enters a tenant; see `Database`
    error_body      its error envelope
    sealed          the tables with contents that were sealed with the secret
    after_restore   is called with a connection to each database that was restored from a backup
    other_services  for the title of each other service, a table that only its databases have
    """

    name: str
    title: str
    settings: type[S]
    resources: Callable[[S], R]
    build: Callable[[Database[R]], Service]
    schema_folders: Sequence[Path]
    factory: str
    tenancy: LiteralString | None = None
    error_body: ErrorBody = Problem.body
    sealed: Sequence[SealedTable] = ()
    after_restore: Callable[[psycopg.Connection[Any]], None] = _change_nothing
    other_services: Mapping[str, str] = field(default_factory=dict[str, str])

    def configured(self, listener: socket.socket | None = None) -> S:
        """Read the settings and configure the logs. Without a base address, the served address is used.

        Raises `CannotStart` for an invalid setting.
        """
        settings = read_settings(self.settings)
        logs.configure(settings.log_level)
        return settings.served_at(address_of(listener)) if listener else settings

    def ready(self, settings: S) -> S:
        """The settings with the URL of a database that is up to date. Migrates the bundled database if necessary.

        Raises `CannotStart` if another database lacks migrations, or if the secret of its contents is missing. It also
        raises the errors of `resources`, before requests are served.
        """
        database_location.require_secret(settings, self.sealed)
        with database_location.report_unusable_directory(settings.data_dir):
            self.resources(settings)
        url = database_location.url(settings)
        if not settings.database_url:
            self.migrate(url)
        self._require_schema(url)
        return settings.model_copy(update={"database_url": url})

    def with_existing_database(self, settings: S) -> S:
        """The settings with the URL of an existing database that is up to date: for read-only commands.

        Creates and changes nothing. Raises `CannotStart`.
        """
        database_location.require_secret(settings, self.sealed)
        url = database_location.existing_url(settings)
        self._require_schema(url)
        return settings.model_copy(update={"database_url": url})

    def _require_schema(self, url: str) -> None:
        missing_migrations = self.pending(url)
        if len(missing_migrations) == len(self.schema()):
            raise CannotStart(f"The database has no tables yet. Make them with: holdfast {self.name} migrate")
        if missing_migrations:
            raise CannotStart(
                f"The database lacks {names_text(missing_migrations)}. "
                f"Bring it up to date with: holdfast {self.name} migrate"
            )

    def schema(self) -> list[Migration]:
        """The migrations, in their order: first those of the job library, last the functions."""
        folders = (*KIT_SCHEMA_FOLDERS, *self.schema_folders)
        return [
            *jobs.schema(),
            *(migration for folder in folders for migration in read_migrations(folder / "migrations")),
            read_functions(folder / kind for folder in folders for kind in ("functions", "triggers")),
        ]

    def pending(self, url: str) -> list[str]:
        """The names of the migrations that a database lacks. Raises `CannotStart`."""
        with _reported_failures():
            return migrations.pending_migrations(url, self.schema(), self.other_services)

    def try_migrations(self, url: str) -> migrations.Trial:
        """Migrate a database in a transaction that is rolled back. Raises `CannotStart`."""
        with _reported_failures():
            return migrations.try_migrations(url, self.schema(), other_services=self.other_services)

    def migrate(self, url: str) -> list[str]:
        """Bring a database up to date. Returns the names of the applied migrations. Raises `CannotStart`."""
        with _reported_failures():
            return migrations.migrate(url, self.schema(), other_services=self.other_services)

    def database(self, settings: S) -> Database[R]:
        return Database(
            settings.database_url,
            self.resources(settings),
            size=settings.pool_size,
            name=f"holdfast {self.name}",
            tenancy=self.tenancy,
        )

    async def transact(self, settings: S, work: Callable[[Tx[R]], Awaitable[T]]) -> T:
        """Run `work` in a transaction, in a process that does not serve requests."""
        return await self.step(settings, lambda steps: steps.transact(work))

    async def step(self, settings: S, work: Callable[[Steps[R]], Awaitable[T]]) -> T:
        """Run work in steps, in a process that does not serve requests."""
        database = self.database(settings)
        await database.pool.open()
        try:
            return await work(Steps(database))
        finally:
            await database.close()

    def transact_ready(self, work: Callable[[Tx[R]], Awaitable[T]]) -> T:
        """Run the work of a command in a transaction, and make the database if there is none. Raises `CannotStart`."""
        return asyncio.run(self.transact(self.ready(self.configured()), work))

    def run_steps(self, work: Callable[[Steps[R]], Awaitable[T]]) -> tuple[T, str]:
        """Run the work of a command in steps, on an existing database. Returns its result, and the location.

        Raises `CannotStart`, also for a `Problem` of the work.
        """
        settings = self.configured()
        location = database_location.location_text(settings)
        try:
            return asyncio.run(self.step(self.with_existing_database(settings), work)), location
        except Problem as problem:
            raise CannotStart(problem.message) from problem

    def transact_existing(self, work: Callable[[Tx[R]], Awaitable[T]]) -> tuple[T, str]:
        """Run the work of a command in a transaction, on an existing database. Returns its result, and the location.

        Raises `CannotStart`, also for a `Problem` of the work.
        """
        settings = self.configured()
        location = database_location.location_text(settings)
        try:
            return asyncio.run(self.transact(self.with_existing_database(settings), work)), location
        except Problem as problem:
            raise CannotStart(f"{problem.message} This was looked for in {location}.") from problem

    def app(self, settings: S, *, background: bool) -> ASGIApp:
        self._log_start()
        return tuned_for_serving(self.build(self.database(settings)).app(background=background))

    def _log_start(self) -> None:
        log.info("starting", service=self.name, version=__version__)

    def worker(self) -> ASGIApp:
        """The application of one of several worker processes."""
        end_with_parent()
        settings = self.configured().served_at(os.environ["_HOLDFAST_ADDRESS"])
        return self.app(settings, background=os.environ["_HOLDFAST_BACKGROUND"] == "1")

    def served(self, settings: S, listener: socket.socket, *, background: bool = True) -> ServedService:
        """The service, ready to be served on a socket."""
        warn_of_unknown_variables(self.settings)
        app = self.app(settings, background=background)
        return ServedService(uvicorn.Config(app, **_http(settings, self.error_body)), listener)

    def serve(self, settings: S, listener: socket.socket, *, background: bool = True, workers: int = 1) -> None:
        """Serve until a signal stops the process."""
        if workers == 1:
            serve([self.served(settings, listener, background=background)])
            return
        warn_of_unknown_variables(self.settings)
        with tempfile.TemporaryDirectory(prefix="holdfast-metrics-") as figures:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = figures
            os.environ["_HOLDFAST_BACKGROUND"] = str(int(background))
            os.environ["_HOLDFAST_ADDRESS"] = address_of(listener)
            os.environ[settings.variable("database_url")] = settings.database_url
            os.environ[settings.variable("secret_key")] = secret_of(settings).value.decode()
            config = uvicorn.Config(self.factory, factory=True, workers=workers, **_http(settings, self.error_body))
            at_hangup = signal.getsignal(signal.SIGHUP)
            supervisor = Multiprocess(config, copies_of_socket(listener))
            signal.signal(signal.SIGHUP, at_hangup)  # uvicorn would start the workers again
            supervisor.run()

    def work(self, settings: S, begun: Callable[[], None]) -> None:
        """Run only the background work, until a signal stops the process."""

        async def work() -> int:
            database = self.database(settings)
            signals = signals_to_stop()
            self._log_start()
            async with self.build(database).opened(background=True):
                begun()
                return await signals.get()

        warn_of_unknown_variables(self.settings)
        with contextlib.suppress(KeyboardInterrupt):
            if asyncio.run(work()) == signal.SIGTERM:
                sys.exit(128 + signal.SIGTERM)


@contextlib.contextmanager
def _reported_failures() -> Generator[None]:
    """Raise `CannotStart` for whatever keeps a schema from being read or migrated."""
    try:
        yield
    except (MigrationError, psycopg.Error) as error:
        if text := bundled.full_disk(error):
            raise CannotStart(text) from error
        if isinstance(error, MigrationError):
            raise CannotStart(str(error)) from error
        raise CannotStart(
            f"The schema of the database cannot be read or changed. PostgreSQL says: {connection_failure(error)}. "
            + (
                connection_remedy(error, "the URL of the database")
                if outage_of(error)
                else "Correct what it names, such as a right that the user of the database lacks, and try again."
            )
        ) from error


def _http(settings: Settings, error_body: ErrorBody) -> dict[str, Any]:
    bounds = ConnectionLimits(
        min(settings.max_connections, files_for_connections()),
        settings.max_connections_per_address,
        settings.trusted_proxies,
        error_body,
    )
    return {
        "http": partial(Connection, bounds),
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": settings.trusted_proxies,
        "timeout_graceful_shutdown": 10,
        "backlog": BACKLOG,
    }
