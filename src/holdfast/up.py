"""`holdfast up`: both services in one process, with demo data on the first start."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.events.settings import Settings as EventsSettings
    from holdfast.inventory.settings import Settings as InventorySettings

EVENTS_PORT = 8002
INVENTORY_PORT = 8001

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]


def up(host: Host = "127.0.0.1", inventory_port: Port = INVENTORY_PORT, events_port: Port = EVENTS_PORT) -> None:
    """Start both services on the embedded database, with demo data on the first start."""
    from holdfast.events.product import EVENTS
    from holdfast.inventory.product import INVENTORY
    from holdfast.kit import serving, sockets

    stock, tickets = sockets.listen_all(host, inventory_port, events_port)
    stock_settings, tickets_settings = INVENTORY.configured(stock), EVENTS.configured(tickets)
    if "oauth_builtin" not in tickets_settings.model_fields_set:
        tickets_settings = tickets_settings.model_copy(update={"oauth_builtin": True})
    stock_settings, tickets_settings = INVENTORY.ready(stock_settings), EVENTS.ready(tickets_settings)
    _present_inventory(stock_settings)
    _present_events(tickets_settings)
    typer.echo("Stop with Ctrl-C.")
    serving.serve([INVENTORY.served(stock_settings, stock), EVENTS.served(tickets_settings, tickets)])


def _present_inventory(settings: "InventorySettings") -> None:
    import asyncio

    from holdfast.inventory import demo
    from holdfast.inventory.product import INVENTORY

    planted = asyncio.run(INVENTORY.transact(settings, demo.plant))
    typer.echo(f"{typer.style('Inventory', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/auth.md")
    if planted:
        typer.echo(f"  demo shop      {planted.domain}")
        typer.echo(f"  its key        {planted.key}")
        typer.echo(f"  storefront     {_program()} inventory sign-proxy-url {planted.domain}")
    else:
        typer.echo(f"  shops          {_program()} inventory shop list")
        typer.echo(f"  a shop's key   {_program()} inventory shop key SHOP_DOMAIN")


def _present_events(settings: "EventsSettings") -> None:
    import asyncio

    from holdfast.events import demo
    from holdfast.events.product import EVENTS

    planted = asyncio.run(EVENTS.transact(settings, demo.plant))
    typer.echo(f"{typer.style('Events', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/agents.md")
    typer.echo(f"  reference      {settings.base_url}/docs")
    typer.echo(f"  console        {settings.base_url}/console")
    if not settings.smtp_host:
        typer.echo(f"  mails          files in {settings.data_dir.resolve() / 'mail'}, also the link to sign in")
    if planted:
        typer.echo(f"  admin key      {planted.admin_key}")
        typer.echo(f"  organizer key  {planted.organizer_key}")
        typer.echo(f"  organizer      {planted.email}")
        typer.echo(f"  demo event     {settings.base_url}/organizers/{planted.slug}/events/{planted.event_id}")
        typer.echo(f"  waiting room   {settings.base_url}/queues/{planted.queue_id}")
        typer.echo("  Keep these two keys: they are not shown again. If you lose one, make a new one:")
    else:
        typer.echo(f"  organizers     {_program()} events organizer list")
        typer.echo("  Keys are shown once. If you lost yours, make a new one:")
    typer.echo(f"  for an admin   {_program()} events key create --admin --name NAME")
    typer.echo(f"  for others     {_program()} events key create --organizer SLUG --name NAME")


def _program() -> str:
    """How this program was called, so that the commands shown can be copied."""
    return sys.argv[0] if "/" in sys.argv[0] and len(sys.argv[0]) < 40 else "holdfast"
