"""`holdfast up`: both services in one process, with demo data on the first start."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.kit.imports import importing

if TYPE_CHECKING:
    from socket import socket

    from holdfast.events.settings import Settings as EventsSettings
    from holdfast.inventory.settings import Settings as InventorySettings
    from holdfast.kit.serving import Served

EVENTS_PORT = 8002
INVENTORY_PORT = 8001
PAYMENTS_PORT = 8003
SHOPS_PORT = 8004

LOOPBACK = ("127.0.0.1", "localhost", "::1")

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]


DemoPayments = Annotated[
    bool, typer.Option("--demo-payments", help="Start a payment processor too, with cards that charge nobody.")
]
ShopsPort = Annotated[
    int | None,
    typer.Option(help="Port of the demo shops; 8004, or any free one if another inventory port was chosen."),
]


def up(
    host: Host = "127.0.0.1",
    inventory_port: Port = INVENTORY_PORT,
    events_port: Port = EVENTS_PORT,
    demo_payments: DemoPayments = False,
    payments_port: Port = PAYMENTS_PORT,
    shops_port: ShopsPort = None,
) -> None:
    """Start both services on the embedded database, with demo data on the first start."""
    with importing():
        from holdfast.events.product import EVENTS
        from holdfast.inventory.product import INVENTORY
        from holdfast.kit import serving, sockets

    # Whoever reaches the demo shops acts as a merchant, so others reach them only if somebody wants that.
    demo_shops = not INVENTORY.configured().client_id and (host in LOOPBACK or shops_port is not None)
    if shops_port is None:
        shops_port = SHOPS_PORT if inventory_port == INVENTORY_PORT else 0
    ports = [inventory_port, events_port, *([shops_port] if demo_shops else [])]
    stock, tickets, *more = sockets.listen_all(host, *ports, *([payments_port] if demo_payments else []))
    shops, payments = more[:demo_shops], more[demo_shops:]
    stock_settings, tickets_settings = INVENTORY.configured(stock), EVENTS.configured(tickets)
    for each in shops:
        stock_settings = _shops_at(each, stock_settings)
    if "oauth_builtin" not in tickets_settings.model_fields_set:
        tickets_settings = tickets_settings.model_copy(update={"oauth_builtin": True})
    for each in payments:
        tickets_settings = _paid_at(each, tickets_settings)
    stock_settings, tickets_settings = INVENTORY.ready(stock_settings), EVENTS.ready(tickets_settings)
    _present_inventory(stock_settings)
    beside = [_demo_shops(each, stock_settings) for each in shops]
    _present_events(tickets_settings)
    beside += [_demo_payments(each, tickets_settings) for each in payments]
    typer.echo("Stop with Ctrl-C.")
    serving.serve([INVENTORY.served(stock_settings, stock), EVENTS.served(tickets_settings, tickets), *beside])


def _present_inventory(settings: "InventorySettings") -> None:
    import asyncio

    from holdfast.inventory import demo
    from holdfast.inventory.product import INVENTORY

    planted = asyncio.run(INVENTORY.transact(settings, demo.plant))
    typer.echo(f"{typer.style('Inventory', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/auth.md")
    typer.echo(f"  console        {_program()} inventory console-link {planted.domain if planted else 'SHOP_DOMAIN'}")
    if planted:
        typer.echo(f"  demo shop      {planted.domain}")
        typer.echo(f"  its key        {planted.key}")
        # The command looks at the settings, which do not know a port that was chosen here.
        place = "" if settings.base_url.endswith(f":{INVENTORY_PORT}") else f" --base-url {settings.base_url}"
        typer.echo(f"  storefront     {_program()} inventory sign-proxy-url {planted.domain}{place}")
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


def _paid_at(listener: "socket", settings: "EventsSettings") -> "EventsSettings":
    """The settings of the events service, with the payment processor for demonstrations."""
    from holdfast.events.payments.demo.processor import KEY, SECRET
    from holdfast.kit.sockets import address_of

    return settings.model_copy(
        update={"stripe_key": KEY, "stripe_webhook_secret": SECRET, "stripe_api": address_of(listener)}
    )


def _demo_payments(listener: "socket", settings: "EventsSettings") -> "Served":
    """A payment processor that moves no money, for the events service."""
    from holdfast.events.payments.demo import beside
    from holdfast.kit.sockets import address_of

    typer.echo(f"{typer.style('Demo payments', bold=True)}  {address_of(listener)}")
    typer.echo(f"  to be paid     connect an account at {settings.base_url}/console/payouts")
    typer.echo("  cards          4242 4242 4242 4242 pays, 4000 0000 0000 0002 is declined; no money moves")
    return beside.served(listener, settings.base_url, settings.data_dir)


def _shops_at(listener: "socket", settings: "InventorySettings") -> "InventorySettings":
    """The settings of the inventory service, with demo shops as its platform."""
    from holdfast.inventory.shopify.double import CLIENT_ID, framing
    from holdfast.kit.sockets import address_of

    address = address_of(listener)
    return settings.model_copy(
        update={
            "platform_address": f"{address}/{{shop}}",
            "client_id": CLIENT_ID,
            "app_bridge": f"{address}{framing.BRIDGE}",
        }
    )


def _demo_shops(listener: "socket", settings: "InventorySettings") -> "Served":
    """A storefront platform that sells nothing, for the inventory service."""
    from holdfast.inventory import demo, resources
    from holdfast.inventory.shopify.double import beside
    from holdfast.kit.sockets import address_of

    address = f"{address_of(listener)}/{demo.DOMAIN}"
    typer.echo(f"{typer.style('Demo shops', bold=True)}  {address_of(listener)}")
    typer.echo(f"  to begin       install the app, and sell a 6-pack, at {address}")
    typer.echo(f"  the app        {address}/admin/apps/holdfast")
    typer.echo(f"  live number    {address}/products/honey-jars")
    secret = resources.build(settings).client_secrets[0].decode()
    return beside.served(listener, settings.base_url, secret, settings.data_dir, demo.DOMAIN)


def _program() -> str:
    """How this program was called, so that the commands shown can be copied."""
    return sys.argv[0] if "/" in sys.argv[0] and len(sys.argv[0]) < 40 else "holdfast"
