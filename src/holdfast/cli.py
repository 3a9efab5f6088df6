"""The command line: `holdfast up`, and the parts it is made of. Commands import what only they need."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.events import commands as of_events
from holdfast.inventory import commands as of_inventory

if TYPE_CHECKING:
    from procrastinate.jobs import Job

    from holdfast.events.settings import Settings as EventsSettings
    from holdfast.inventory.settings import Settings as InventorySettings
    from holdfast.kit.process import Product

EVENTS_PORT = 8002
INVENTORY_PORT = 8001

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]


def main() -> None:
    """Run a command. A fault that the operator can mend is one line."""
    try:
        app()
    except Exception as error:
        message = _explained(error)
        if message is None:
            raise
        typer.echo(message, err=True)
        raise SystemExit(1) from error


def _explained(error: Exception) -> str | None:
    """What an operator has to do about an error; None for an error of ours."""
    from holdfast.events.storage.store import NotInstalled
    from holdfast.kit.cluster import CannotRun
    from holdfast.kit.problems import Problem
    from holdfast.kit.process import CannotStart
    from holdfast.kit.secrets import TooShort, Unreadable

    match error:
        case CannotStart() | CannotRun() | NotInstalled() | TooShort() | Unreadable():
            return str(error)
        case Problem():
            return f"{error.message} {error.extra.get('errors', '')}".rstrip()
        case _:
            return None


def commands(product: "Callable[[], Product[Any, Any]]", title: str, default_port: int, help: str) -> typer.Typer:
    """What every service can be told: serve, worker, migrate, jobs."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=help)

    @group.command(help=f"Serve {title}: requests and, unless told otherwise, its background work.")
    def serve(
        host: Host = "127.0.0.1",
        port: Port = default_port,
        workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
        background: Annotated[bool, typer.Option(help="Do background work in this process too.")] = True,
    ) -> None:
        from holdfast.kit import process

        listener = process.listen(host, port)
        settings = product().ready(product().configured(listener))
        typer.echo(f"{title} listens on {settings.base_url}")
        product().serve(settings, listener, background=background, workers=workers)

    @group.command(help="Do the background work alone.")
    def worker() -> None:
        settings = product().ready(product().configured())
        product().work(settings, lambda: typer.echo(f"{title} works in the background. Stop with Ctrl-C."))

    @group.command("migrate", help="Bring the schema of the database up to date.")
    def migrate(
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be applied, change nothing.")] = False,
    ) -> None:
        url = product().url(product().configured())
        names = product().pending(url) if dry_run else product().migrate(url)
        done = "would apply" if dry_run else "applied"
        typer.echo("\n".join(f"{done} {name}" for name in names) or "The schema is up to date.")

    @group.command("jobs", help="List the background jobs that failed for good, or try one again.")
    def jobs(retry: Annotated[int | None, typer.Option(help="Id of a job to try again.")] = None) -> None:
        from holdfast.kit import jobs

        async def run() -> "Sequence[Job]":
            async with jobs.opened(product().url(product().configured())) as manager:
                if retry is not None:
                    await jobs.retry(manager, retry)
                    return ()
                return await jobs.failed(manager)

        failed = asyncio.run(run())
        if retry is not None:
            typer.echo(f"Job {retry} is tried again.")
            return
        for each in failed:
            typer.echo(f"{each.id}\t{each.task_name}\tafter {each.attempts} attempts\t{each.task_kwargs}")
        typer.echo(f"{len(failed)} jobs failed for good." if failed else "No job has failed for good.")

    _ = serve, worker, migrate, jobs
    return group


def _events() -> "Product[Any, Any]":
    from holdfast.events.product import EVENTS

    return EVENTS


def _inventory() -> "Product[Any, Any]":
    from holdfast.inventory.product import INVENTORY

    return INVENTORY


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Hand out what is scarce: exactly, in order, losing nothing.",
)
events = commands(_events, "Holdfast Events", EVENTS_PORT, "Events, registrations and waiting rooms.")
inventory = commands(_inventory, "Holdfast Inventory", INVENTORY_PORT, "Shared inventory pools of storefront shops.")
app.add_typer(events, name="events")
events.add_typer(of_events.keys, name="key")
events.add_typer(of_events.organizers, name="organizer")
app.add_typer(inventory, name="inventory")
inventory.add_typer(of_inventory.shops, name="shop")
inventory.command("sign-proxy-url")(of_inventory.sign_proxy_url)
inventory.command("check")(of_inventory.check_ledger)


@app.command()
def up(host: Host = "127.0.0.1", inventory_port: Port = INVENTORY_PORT, events_port: Port = EVENTS_PORT) -> None:
    """Start both services on the embedded database, with demo data on the first start."""
    from holdfast.events.product import EVENTS
    from holdfast.inventory.product import INVENTORY
    from holdfast.kit import process

    stock = process.listen(host, inventory_port)
    stock_settings = INVENTORY.ready(INVENTORY.configured(stock))
    tickets = process.listen(host, events_port)
    tickets_settings = EVENTS.ready(EVENTS.configured(tickets))
    _present_inventory(stock_settings)
    _present_events(tickets_settings)
    typer.echo("Stop with Ctrl-C.")
    process.serve(
        [
            INVENTORY.served(stock_settings, stock),
            EVENTS.served(tickets_settings, tickets),
        ]
    )


def _present_inventory(settings: "InventorySettings") -> None:
    from holdfast.inventory import demo
    from holdfast.inventory.product import INVENTORY

    planted = asyncio.run(INVENTORY.transact(settings, demo.plant))
    typer.echo(f"{typer.style('Inventory', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/auth.md")
    if planted:
        typer.echo(f"  demo shop      {planted.domain}")
        typer.echo(f"  its key        {planted.key}")
        typer.echo(f"  storefront     holdfast inventory sign-proxy-url {planted.domain}")
    else:
        typer.echo("  The demo shop's key, again: holdfast inventory shop key demo.myshopify.com")


def _present_events(settings: "EventsSettings") -> None:
    from holdfast.events import demo
    from holdfast.events.product import EVENTS

    planted = asyncio.run(EVENTS.transact(settings, demo.plant))
    typer.echo(f"{typer.style('Events', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/agents.md")
    typer.echo(f"  reference      {settings.base_url}/docs")
    if planted:
        typer.echo(f"  admin key      {planted.admin_key}")
        typer.echo(f"  organizer key  {planted.organizer_key}")
        typer.echo(f"  demo event     {settings.base_url}/api/events/{planted.event_id}")
        typer.echo(f"  waiting room   {settings.base_url}/queues/{planted.queue_id}")
        typer.echo("  Keep these keys: they are not shown again.")
    else:
        typer.echo("  Its keys were shown on the first start. Another: holdfast events key create --admin --name NAME")


if __name__ == "__main__":
    main()
