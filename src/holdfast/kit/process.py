"""A service as processes: its settings, its database brought up to date, its sockets, its workers."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, LiteralString, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from holdfast.kit import jobs, location, logs, migrate, outbox
from holdfast.kit.bounds import Bounds, files_for_connections
from holdfast.kit.connection import Connection
from holdfast.kit.database import Database, Tx
from holdfast.kit.problems import CannotStart, ErrorBody, Problem
from holdfast.kit.resources import Resources, secret_of
from holdfast.kit.rotation import Sealed
from holdfast.kit.service import Service
from holdfast.kit.serving import Served, end_like_ctrl_c, end_with_parent, only_serving, serve, signals_to_stop
from holdfast.kit.settings import Settings, read
from holdfast.kit.sockets import address_of
from holdfast.kit.steps import Steps

S = TypeVar("S", bound=Settings)
R = TypeVar("R", bound=Resources[Any])
T = TypeVar("T")


@dataclass(frozen=True)
class Product(Generic[S, R]):
    """A service as the command line sees it.

    resources   builds what its operations use besides the database
    build       builds the service
    migrations  the folders with its migrations, in the order in which they are applied
    factory     where a worker process finds its application: `module:function`, which calls `worker`
    tenancy     how a transaction enters a tenant; see `Database`
    error_body  its error envelope
    sealed      the tables with contents that only the secret opens
    """

    name: str
    title: str
    settings: type[S]
    resources: Callable[[S], R]
    build: Callable[[Database[R]], Service]
    migrations: Sequence[Path]
    factory: str
    tenancy: LiteralString | None = None
    error_body: ErrorBody = Problem.body
    sealed: Sequence[Sealed] = ()

    def configured(self, listener: socket.socket | None = None) -> S:
        """Read the settings. Without a base address, the served address is used. Configures the logs too.

        Raises `CannotStart` for a setting that is not acceptable.
        """
        settings = read(self.settings)
        logs.configure(settings.log_level)
        return settings.served_at(address_of(listener)) if listener else settings

    def ready(self, settings: S) -> S:
        """The settings with the URL of a database that is up to date. The embedded database is migrated if necessary.

        Raises `CannotStart` if another database lacks migrations, or if the secret of its contents is missing, and
        what `resources` raises: here, before anything is served.
        """
        location.require_secret(settings, self.sealed)
        with location.using(settings.data_dir):
            self.resources(settings)
        url = location.url(settings)
        if not settings.database_url:
            self.migrate(url)
        self._require_schema(url)
        return settings.model_copy(update={"database_url": url})

    def existing(self, settings: S) -> S:
        """The settings with the URL of a database that exists and is up to date: for commands that only look.

        Nothing is created or changed. Raises `CannotStart`.
        """
        location.require_secret(settings, self.sealed)
        url = location.existing_url(settings)
        self._require_schema(url)
        return settings.model_copy(update={"database_url": url})

    def _require_schema(self, url: str) -> None:
        if missing := self.pending(url):
            raise CannotStart(
                f"The database lacks {', '.join(missing)}. Bring it up to date with: holdfast {self.name} migrate"
            )

    def schema(self) -> list[migrate.Migration]:
        return [*jobs.schema(), *outbox.schema(), *(found for each in self.migrations for found in migrate.read(each))]

    def pending(self, url: str) -> list[str]:
        return migrate.pending(url, self.schema())

    def migrate(self, url: str) -> list[str]:
        """Bring a database up to date. Returns the names of the migrations applied. Raises `CannotStart`."""
        try:
            return migrate.migrate(url, self.schema())
        except (migrate.EditedMigration, migrate.AnotherMigrates, migrate.InUse) as error:
            raise CannotStart(str(error)) from error

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

    def change(self, work: Callable[[Tx[R]], Awaitable[T]]) -> T:
        """Run a command's work in a transaction. Raises `CannotStart`."""
        return asyncio.run(self.transact(self.ready(self.configured()), work))

    def do(self, work: Callable[[Steps[R]], Awaitable[T]]) -> tuple[T, str]:
        """Run a command's work in steps on a database that exists. Returns its result, and the place in words.

        Raises `CannotStart`, also for what the work refuses.
        """
        settings = self.configured()
        place = location.place(settings)
        try:
            return asyncio.run(self.step(self.existing(settings), work)), place
        except Problem as problem:
            raise CannotStart(problem.message) from problem

    def look(self, work: Callable[[Tx[R]], Awaitable[T]]) -> tuple[T, str]:
        """Run the work of a command that only looks: nothing is created. Returns its result, and the place in words.

        Raises `CannotStart`, also for what the work refuses.
        """
        settings = self.configured()
        place = location.place(settings)
        try:
            return asyncio.run(self.transact(self.existing(settings), work)), place
        except Problem as problem:
            raise CannotStart(f"{problem.message} This was looked for in {place}.") from problem

    def app(self, settings: S, *, background: bool) -> ASGIApp:
        return only_serving(self.build(self.database(settings)).app(background=background))

    def worker(self) -> ASGIApp:
        """The application of one of several worker processes."""
        end_with_parent()
        settings = self.configured().served_at(os.environ["_HOLDFAST_ADDRESS"])
        return self.app(settings, background=os.environ["_HOLDFAST_BACKGROUND"] == "1")

    def served(self, settings: S, listener: socket.socket, *, background: bool = True) -> Served:
        """The service, ready to be served on a socket."""
        app = self.app(settings, background=background)
        return Served(uvicorn.Config(app, **_http(settings, self.error_body)), listener)

    def serve(self, settings: S, listener: socket.socket, *, background: bool = True, workers: int = 1) -> None:
        """Serve until a signal stops the process."""
        if workers == 1:
            serve([self.served(settings, listener, background=background)])
            return
        end_like_ctrl_c()
        with tempfile.TemporaryDirectory(prefix="holdfast-metrics-") as figures:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = figures
            os.environ["_HOLDFAST_BACKGROUND"] = str(int(background))
            os.environ["_HOLDFAST_ADDRESS"] = address_of(listener)
            os.environ[settings.variable("database_url")] = settings.database_url
            os.environ[settings.variable("secret_key")] = secret_of(settings).value.decode()
            config = uvicorn.Config(self.factory, factory=True, workers=workers, **_http(settings, self.error_body))
            Multiprocess(config, [listener]).run()

    def work(self, settings: S, begun: Callable[[], None]) -> None:
        """Do only the background work, until a signal stops the process."""

        async def work() -> int:
            database = self.database(settings)
            signals = signals_to_stop()
            async with self.build(database).opened(background=True):
                begun()
                return await signals.get()

        end_like_ctrl_c()
        with contextlib.suppress(KeyboardInterrupt):
            if asyncio.run(work()) == signal.SIGTERM:
                sys.exit(128 + signal.SIGTERM)


def _http(settings: Settings, error_body: ErrorBody) -> dict[str, Any]:
    bounds = Bounds(
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
    }
