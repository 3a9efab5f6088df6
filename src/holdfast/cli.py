"""The command line: `holdfast up`, and the parts it is made of."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeVar

import typer
import uvicorn
from rich.console import Console
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from holdfast.events import api as events_api
from holdfast.events import demo as events_demo
from holdfast.events import settings as events_settings
from holdfast.events.keys.model import ApiKey, CreateKey
from holdfast.events.keys.operations import create, mint
from holdfast.kit import jobs, logs, migrate
from holdfast.kit.command import check
from holdfast.kit.database import Database
from holdfast.kit.operation import ADMIN
from holdfast.kit.problems import Problem

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hand out what is scarce: exactly, in order, losing nothing.",
)
events = typer.Typer(no_args_is_help=True, help="Events, registrations and waiting rooms.")
keys = typer.Typer(no_args_is_help=True, help="API keys of the events service.")
app.add_typer(events, name="events")
events.add_typer(keys, name="key")

say = partial(Console(highlight=False).print, soft_wrap=True)
complain = partial(Console(highlight=False, stderr=True).print, soft_wrap=True)

T = TypeVar("T")

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]

EVENTS_PORT = 8002


@app.command()
def up(host: Host = "127.0.0.1", events_port: Port = EVENTS_PORT) -> None:
    """Start everything on the embedded database, with demo data on the first start."""
    listener = _listen(host, events_port)
    settings = _with_database(_events(listener))
    planted = asyncio.run(_in_transaction(settings, events_demo.plant))
    say(f"[bold]Events[/]  {settings.base_url}")
    say(f"  reference      {settings.base_url}/docs")
    say(f"  catalog        {settings.base_url}/api")
    if planted:
        say(f"  admin key      {planted.admin_key}")
        say(f"  organizer key  {planted.organizer_key}")
        say(f"  demo event     {settings.base_url}/api/events/{planted.event_id}")
        say("  Keep the keys: they are not shown again.")
    else:
        say("  The keys were shown on the first start. Another one: holdfast events key create --admin --name NAME")
    say("Stop with Ctrl-C.")
    _serve(settings, listener)


@events.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = EVENTS_PORT,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    background: Annotated[bool, typer.Option(help="Do background work (settlement, jobs) in this process too.")] = True,
) -> None:
    """Serve the events service: its doors and, unless told otherwise, its background work."""
    listener = _listen(host, port)
    settings = _with_database(_events(listener))
    say(f"Holdfast Events listens on {settings.base_url}")
    _serve(settings, listener, background=background, workers=workers)


@events.command()
def worker() -> None:
    """Do the background work alone: settlement and jobs."""
    settings = _with_database(_events())
    database = _database(settings)
    service = events_api.service(settings, database)

    async def work() -> None:
        await database.open()
        try:
            async with service.background():
                say("Holdfast Events works in the background. Stop with Ctrl-C.")
                await asyncio.Event().wait()
        finally:
            await database.close()

    _end_like_ctrl_c()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work())


@events.command("migrate")
def migrate_events(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be applied and change nothing.")] = False,
) -> None:
    """Bring the schema of the events database up to date."""
    url = _events().url
    names = migrate.pending(url, migrations())
    if not dry_run:
        _migrate(url)
    say("\n".join(f"{'would apply' if dry_run else 'applied'} {name}" for name in names) or "The schema is up to date.")


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    admin: Annotated[bool, typer.Option("--admin", help="A key that may do everything.")] = False,
    organizer: Annotated[int | None, typer.Option(help="Id of the organizer the key acts for.")] = None,
) -> None:
    """Make an API key and print it, once, alone on the last line."""
    if admin == (organizer is not None):
        raise typer.BadParameter("Say either --admin or --organizer ID.")
    settings = _with_database(_events())

    async def make(tx: events_settings.Tx) -> ApiKey:
        command = check(CreateKey, {"name": name, "user_id": organizer})
        return await mint(tx, None, command.name) if admin else await create(tx, ADMIN, command)

    try:
        key = asyncio.run(_in_transaction(settings, make))
    except Problem as problem:
        complain(f"{problem.message} {problem.body().get('errors', '')}")
        raise typer.Exit(1) from problem
    say(f"Key {key.id}, {name}. It is not shown again.")
    print(key.key)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on, also while the service behind it is still starting."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        complain(f"Cannot listen on {host} port {port}: {error.strerror}. Choose another address or port.")
        raise typer.Exit(1) from error
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener


def _events(listener: socket.socket | None = None) -> events_settings.Settings:
    """The settings, complete: with the address served where no base address is set. Sets up the logs too."""
    settings = events_settings.Settings()  # pyright: ignore[reportCallIssue]
    logs.configure(settings.log_level)
    if settings.base_url or not listener:
        return settings.model_copy(update={"base_url": settings.base_url.rstrip("/")})
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return settings.model_copy(update={"base_url": f"http://{host}:{port}"})


def _with_database(settings: events_settings.Settings) -> events_settings.Settings:
    """The settings with a database that is up to date: the embedded one is made so, another is only checked."""
    url = settings.url
    if not settings.database_url:
        _migrate(url)
    elif missing := migrate.pending(url, migrations()):
        complain(f"The database lacks {', '.join(missing)}. Bring it up to date with: holdfast events migrate")
        raise typer.Exit(1)
    return settings.model_copy(update={"database_url": url})


def migrations() -> list[migrate.Migration]:
    return [*jobs.schema(), *migrate.read(Path(events_api.__file__).parent / "migrations")]


def _migrate(url: str) -> None:
    try:
        migrate.migrate(url, migrations())
    except migrate.EditedMigration as error:
        complain(str(error))
        raise typer.Exit(1) from error


def _database(settings: events_settings.Settings) -> events_settings.Database:
    return Database(settings.database_url, settings, size=settings.pool_size, name="holdfast events")


async def _in_transaction(settings: events_settings.Settings, work: Callable[[events_settings.Tx], Awaitable[T]]) -> T:
    database = _database(settings)
    await database.pool.open()
    try:
        return await database.transact(work)
    finally:
        await database.pool.close()


def events_app() -> ASGIApp:
    """The ASGI application, as a worker process of `serve --workers` builds it."""
    return _app(_events(), background=os.environ["_HOLDFAST_BACKGROUND"] == "1")


def _app(settings: events_settings.Settings, *, background: bool) -> ASGIApp:
    return events_api.service(settings, _database(settings)).app(background=background)


def _serve(
    settings: events_settings.Settings, listener: socket.socket, *, background: bool = True, workers: int = 1
) -> None:
    """Serve until told to stop."""
    http: dict[str, Any] = {
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": settings.trusted_proxies,
        "timeout_graceful_shutdown": 10,
    }
    _end_like_ctrl_c()
    if workers == 1:
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(_app(settings, background=background), **http)).run([listener])
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-metrics-") as figures:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = figures
        os.environ["EVENTS_DATABASE_URL"] = settings.database_url
        os.environ["EVENTS_BASE_URL"] = settings.base_url
        os.environ["_HOLDFAST_BACKGROUND"] = str(int(background))
        config = uvicorn.Config("holdfast.cli:events_app", factory=True, workers=workers, **http)
        Multiprocess(config, [listener]).run()


def _end_like_ctrl_c() -> None:
    # SIGTERM would otherwise end the process without its exit handlers, and leave the embedded server running.
    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    app()
