"""The command line: the commands of both services, and the groups of each. Commands import their own dependencies."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from holdfast import __version__
from holdfast import up as starting
from holdfast.commands import check as checking
from holdfast.commands.backups.commands import backup, move, restore
from holdfast.commands.config import config, secret
from holdfast.commands.status import status
from holdfast.commands.webhooks import webhooks
from holdfast.events import commands as of_events
from holdfast.inventory import commands as of_inventory
from holdfast.kit.compat.rich_tracebacks import keep_rich_out
from holdfast.kit.compat.typer_missing_values import skip_missing_values
from holdfast.kit.process.commands import address_command, jobs_command, mail_commands
from holdfast.kit.process.startup import end_in_order, importing
from holdfast.up import EVENTS_PORT, INVENTORY_PORT, Host, Port
from holdfast_verify.cli import verify, witness
from holdfast_verify.terminal import fitted, sentences


def show_usage_error(error: Any) -> int:
    """Print an error of the command line to standard error. Returns the exit status.

    error    an error of typer, which has no public class for all of them
    """
    _explain(error)
    text = io.StringIO()
    error.show(text)
    typer.echo(fitted(sentences(text.getvalue()), err=True), err=True)
    return error.exit_code


def _explain(error: Any) -> None:
    """Say of a value that is not acceptable what would be right. The words of typer are for programmers."""
    from pydantic import ValidationError

    from holdfast.kit.environment.variables import error_text

    if isinstance(error.__cause__, ValidationError):
        detail = error.__cause__.errors()[0]
        text = error_text(detail)
        error.message = text if detail["type"] == "value_error" else f"It {text}, not {detail['input']!r}."


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.kit.process.service_process import ServiceProcess


DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Apply what is missing in one transaction and roll it back: says what would be applied, or what fails. "
        "Stores nothing. Like the migration itself it locks the tables that change, here for at most a second.",
    ),
]


def main() -> None:
    """Run a command. An error that the operator can correct is printed on one line."""
    end_in_order()
    skip_missing_values()
    keep_rich_out()
    try:
        status = app(standalone_mode=False)
    except typer.Abort as error:
        typer.echo("Nothing was done.", err=True)
        raise SystemExit(1) from error
    except TyperException as error:
        raise SystemExit(show_usage_error(error)) from error
    except Exception as error:
        message = _explained(error)
        if message is None:
            raise
        typer.echo(fitted(message, err=True), err=True)
        raise SystemExit(1) from error
    raise SystemExit(status or 0)


def _explained(error: Exception) -> str | None:
    """The text that tells an operator how to correct an error; None for an error in this program."""
    import psycopg

    from holdfast.events.storage.store import MissingPackage
    from holdfast.kit.contract.problems import CannotStart, Problem
    from holdfast.kit.postgres import bundled
    from holdfast.kit.postgres.bundled_server import CannotRun
    from holdfast.kit.security.service_secret import SecretTooShort, UnsealError

    match error:
        case CannotStart() | CannotRun() | MissingPackage() | SecretTooShort() | UnsealError():
            return str(error)
        case Problem():
            return " ".join([error.message, *_by_field(error.extra.get("errors", {}))])
        case psycopg.Error() | OSError():
            return bundled.full_disk(error) or _no_connection(error)
        case _:
            return None


def _no_connection(error: Exception) -> str | None:
    """Why the bundled PostgreSQL takes no connection, and what to do; None if no operator can correct that."""
    import psycopg

    from holdfast.kit.postgres.connection_errors import connection_failure, remedy_at_server

    # An error before there is a connection has no code.
    if not isinstance(error, psycopg.OperationalError) or error.sqlstate is not None:
        return None
    remedy = remedy_at_server(error)
    return f"PostgreSQL takes no connection: {connection_failure(error)}. {remedy}" if remedy else None


def _by_field(errors: "Mapping[str, Sequence[str]]") -> "list[str]":
    return [f"{field}: {message}." for field, messages in errors.items() for message in messages]


def commands(
    process: "Callable[[], ServiceProcess[Any, Any]]", title: str, default_port: int, help: str
) -> typer.Typer:
    """The commands of every service: serve, address, worker, migrate, jobs, reseal, mail."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=help)

    @group.command(help=f"Answer requests.\n\nServes {title}, and does its background work unless told otherwise.")
    def serve(
        host: Host = "127.0.0.1",
        port: Port = default_port,
        workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
        background: Annotated[bool, typer.Option(help="Do background work in this process too.")] = True,
    ) -> None:
        from holdfast.kit.http import sockets
        from holdfast.kit.process import served_address

        listener = sockets.listen(host, port)
        settings = process().ready(process().configured(listener))
        served_address.store_served_address(settings)
        typer.echo(f"{title} listens on {_socket_text(sockets.address_of(listener), settings.base_url)}")
        process().serve(settings, listener, background=background, workers=workers)

    @group.command(help="Do the background work alone.")
    def worker() -> None:
        settings = process().ready(process().configured())
        process().work(settings, lambda: typer.echo(f"{title} works in the background. Stop with Ctrl-C."))

    @group.command("migrate", help="Bring the schema of the database up to date. The service may run.")
    def migrate(dry_run: DryRun = False) -> None:
        from holdfast.kit.process import database_location

        settings = process().configured()
        if dry_run:
            trial = process().try_migrations(database_location.existing_url(settings))
            lines = [
                *(f"would apply {name}" for name in trial.succeeded),
                *(f"not tried {name}" for name in trial.untried),
            ]
            lines += [trial.reason] if trial.reason else []
            typer.echo(f"Looked in {database_location.location_text(settings)}.", err=True)
        else:
            lines = [f"applied {name}" for name in process().migrate(database_location.url(settings))]
        typer.echo("\n".join(lines) or "The schema is up to date.")

    @group.command("reseal", help="Encrypt all again with the present secret.\n\nFor the rotation of the secret key.")
    def reseal() -> None:
        import asyncio

        from holdfast.kit.security import service_secret

        settings = process().with_existing_database(process().configured())
        for table in asyncio.run(service_secret.reseal(process().database(settings), process().sealed)):
            unreadable_note = f", {table.unreadable} left that another secret sealed" if table.unreadable else ""
            typer.echo(f"{table.table}: {table.rows} sealed again{unreadable_note}.")

    group.command("address")(address_command(process, default_port))
    group.command("jobs")(jobs_command(process))
    group.add_typer(mail_commands(process, title), name="mail")
    _ = serve, worker, migrate, reseal
    return group


def _socket_text(served: str, public: str) -> str:
    """The address that is listened on, with the public address beside it if it is another one."""
    return served if public == served else f"{served} (public address: {public})"


def _events() -> "ServiceProcess[Any, Any]":
    with importing():
        from holdfast.events.service import EVENTS

    return EVENTS


def _inventory() -> "ServiceProcess[Any, Any]":
    with importing():
        from holdfast.inventory.service import INVENTORY

    return INVENTORY


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Hand out what is scarce: exactly, in order, losing nothing.",
)
events = commands(_events, "Holdfast Events", EVENTS_PORT, "Events, registrations and waiting rooms.")
inventory = commands(_inventory, "Holdfast Inventory", INVENTORY_PORT, "Shared inventory pools of storefront shops.")
logs = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Public logs of the order.")


@logs.callback()
def _logs() -> None:  # pyright: ignore[reportUnusedFunction] - with one command alone, its name would be left out
    pass


app.command()(starting.up)
app.command()(starting.demo)
app.command()(status)
app.command()(verify)
app.add_typer(config, name="config")
app.add_typer(secret, name="secret")
app.add_typer(webhooks, name="webhooks")
app.command("backup")(backup)
app.command("restore")(restore)
app.command("move")(move)
app.command()(checking.check)
app.add_typer(events, name="events")
events.add_typer(of_events.keys, name="key")
events.add_typer(of_events.organizers, name="organizer")
events.add_typer(of_events.people, name="person")
events.add_typer(of_events.apps, name="app")
events.add_typer(of_events.payments, name="payments")
events.command("console-link")(of_events.console_link)
events.command("draw")(of_events.draw)
events.add_typer(logs, name="log")
logs.command("witness")(witness)
app.add_typer(inventory, name="inventory")
inventory.add_typer(of_inventory.shops, name="shop")
inventory.command("sign-proxy-url")(of_inventory.sign_proxy_url)
inventory.command("console-link")(of_inventory.console_link)
inventory.command("webhooks")(of_inventory.webhooks)
inventory.command("platform-double")(starting.demo_shops)
inventory.command("check")(checking.check_ledger)


def _last_migrations(service: str) -> "Sequence[str]":
    """The last migrations of a service and of what both share. Read from their files: imports would take time."""
    package = Path(__file__).parent
    folders = [package / service, package / "accounts", *sorted((package / "kit").iterdir())]
    return [
        max(path.name for path in files) for folder in folders if (files := [*folder.glob("schema/migrations/*.sql")])
    ]


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"holdfast-server {__version__}")
        for service in ("events", "inventory"):
            typer.echo(f"schema of {service}: {', '.join(_last_migrations(service))}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    pass


if __name__ == "__main__":
    main()
