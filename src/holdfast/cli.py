"""The command line: `holdfast up`, and the parts it is made of."""

import asyncio
import contextlib
import os
import signal
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

from holdfast.events import api as events_api
from holdfast.events import demo as events_demo
from holdfast.events import settings as events_settings
from holdfast.events.keys.model import ApiKey
from holdfast.events.keys.operations import mint
from holdfast.kit import jobs, logs, migrate
from holdfast.kit.database import Database

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hand out what is scarce: exactly, in order, losing nothing.",
)
events = typer.Typer(no_args_is_help=True, help="Events, registrations and waiting rooms.")
keys = typer.Typer(no_args_is_help=True, help="API keys of the events service.")
app.add_typer(events, name="events")
events.add_typer(keys, name="key")

say = partial(Console(stderr=True, highlight=False).print, soft_wrap=True)

T = TypeVar("T")

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]

EVENTS_PORT = 8002


@app.command()
def up(host: Host = "127.0.0.1", events_port: Port = EVENTS_PORT) -> None:
    """Start everything on the embedded database, with demo data on the first start."""
    settings = _events(host, events_port)
    _migrate(settings.url)
    found = asyncio.run(_in_transaction(settings, events_demo.plant))
    say(f"[bold]Events[/]    {settings.base_url}")
    say(f"  reference  {settings.base_url}/docs")
    say(f"  catalog    {settings.base_url}/api")
    if found:
        say(f"  admin key      {found.admin_key}")
        say(f"  organizer key  {found.organizer_key}   (Demo Organizer)")
        say(f"  demo event     {settings.base_url}/api/events/{found.event_id}")
        say("  Keep the keys: they are not shown again.")
    else:
        say("  Keys were shown on the first start; make another with: holdfast events key create --admin --name NAME")
    say("Stop with Ctrl-C.")
    _serve(settings, host, events_port)


@events.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = EVENTS_PORT,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    background: Annotated[bool, typer.Option(help="Do background work (settlement, jobs) in this process too.")] = True,
) -> None:
    """Serve the events service: its doors and, unless told otherwise, its background work."""
    settings = _events(host, port)
    embedded = not settings.database_url
    url = settings.url
    if embedded:
        _migrate(url)
    elif missing := migrate.pending(url, _migrations()):
        say(f"The database lacks {', '.join(missing)}. Bring it up to date with: holdfast events migrate")
        raise typer.Exit(1)
    say(f"Holdfast Events listens on http://{host}:{port}")
    if workers == 1:
        _serve(settings, host, port, background=background)
    else:
        _serve_with_workers(settings, host, port, workers, background)


@events.command()
def worker() -> None:
    """Do the background work alone: settlement and jobs."""
    settings = _events("127.0.0.1", EVENTS_PORT)
    service = events_api.service(settings)

    async def work() -> None:
        database = _database(settings)
        await database.open()
        try:
            async with service.background(database):
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
    url = _events("127.0.0.1", EVENTS_PORT).url
    names = migrate.pending(url, _migrations()) if dry_run else migrate.migrate(url, _migrations())
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
    settings = _events("127.0.0.1", EVENTS_PORT)
    _migrate(settings.url)

    async def make(tx: events_settings.Tx) -> ApiKey:
        return await mint(tx, organizer, name)

    key = asyncio.run(_in_transaction(settings, make))
    say(f"Key {key.id}, {name}. It is not shown again.")
    print(key.key)


def _events(host: str, port: int) -> events_settings.Settings:
    """The settings, complete: base address filled in, logs set up."""
    settings = events_settings.Settings()  # pyright: ignore[reportCallIssue]
    logs.configure(settings.log_level)
    if settings.base_url:
        return settings.model_copy(update={"base_url": settings.base_url.rstrip("/")})
    shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound
    return settings.model_copy(update={"base_url": f"http://{shown}:{port}"})


def _migrations() -> list[migrate.Migration]:
    return [*jobs.schema(), *migrate.read(Path(events_api.__file__).parent / "migrations")]


def _migrate(url: str) -> None:
    migrate.migrate(url, _migrations())


def _database(settings: events_settings.Settings) -> events_settings.Database:
    return Database(settings.url, settings, size=settings.pool_size, name="holdfast events")


async def _in_transaction(settings: events_settings.Settings, work: Callable[[events_settings.Tx], Awaitable[T]]) -> T:
    database = _database(settings)
    await database.pool.open()
    try:
        return await database.transact(work)
    finally:
        await database.pool.close()


def events_app(*, settings: events_settings.Settings | None = None, background: bool | None = None) -> Any:
    """The ASGI application; without arguments, as a worker process of `serve --workers` builds it."""
    settings = settings or _events(os.environ["_HOLDFAST_HOST"], int(os.environ["_HOLDFAST_PORT"]))
    background = os.environ["_HOLDFAST_BACKGROUND"] == "1" if background is None else background
    return events_api.service(settings).app(_database(settings), background=background)


def _serve(settings: events_settings.Settings, host: str, port: int, *, background: bool = True) -> None:
    _end_like_ctrl_c()
    application = events_app(settings=settings, background=background)
    uvicorn.run(application, host=host, port=port, **_http(settings))


def _serve_with_workers(
    settings: events_settings.Settings, host: str, port: int, workers: int, background: bool
) -> None:
    os.environ |= {"_HOLDFAST_HOST": host, "_HOLDFAST_PORT": str(port), "_HOLDFAST_BACKGROUND": str(int(background))}
    with tempfile.TemporaryDirectory(prefix="holdfast-metrics-") as figures:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = figures
        uvicorn.run("holdfast.cli:events_app", factory=True, host=host, port=port, workers=workers, **_http(settings))


def _http(settings: events_settings.Settings) -> dict[str, Any]:
    return {
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": settings.trusted_proxies,
        "timeout_graceful_shutdown": 10,
    }


def _end_like_ctrl_c() -> None:
    # SIGTERM would otherwise end the process without its exit handlers, and leave the embedded server running.
    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    app()
