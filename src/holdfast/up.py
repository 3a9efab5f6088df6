"""`holdfast up`: both services in one process, with demo data on the first start."""

import sys
from functools import partial
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

Sight = tuple[str, str]
"""Something to look at in a browser: what it is, and its address."""

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]
PaymentsPort = Annotated[
    int | None,
    typer.Option(help="Port of the demo payments; 8003, or any free one if another events port was chosen."),
]
ShopsPort = Annotated[
    int | None,
    typer.Option(help="Port of the demo shops; 8004, or any free one if another inventory port was chosen."),
]


def up(
    host: Host = "127.0.0.1",
    inventory_port: Port = INVENTORY_PORT,
    events_port: Port = EVENTS_PORT,
    payments_port: PaymentsPort = None,
    shops_port: ShopsPort = None,
) -> None:
    """Start both services on the embedded database, with demo data on the first start.

    Unless there are real ones in the settings, a storefront platform and a payment processor for demonstrations start
    too. The one sells nothing, the other charges nobody.
    """
    with importing():
        from holdfast.events.product import EVENTS
        from holdfast.inventory.product import INVENTORY
        from holdfast.kit import serving, sockets

    # Whoever reaches the demonstrations acts as a merchant or pays, so others reach them only if somebody wants that.
    is_ours = host in LOOPBACK
    ports = {"inventory": inventory_port, "events": events_port}
    if not INVENTORY.configured().client_id and (is_ours or shops_port is not None):
        ports["shops"] = _beside(shops_port, SHOPS_PORT, inventory_port == INVENTORY_PORT)
    if not EVENTS.configured().takes_payments and (is_ours or payments_port is not None):
        ports["payments"] = _beside(payments_port, PAYMENTS_PORT, events_port == EVENTS_PORT)
    at = dict(zip(ports, sockets.listen_all(host, *ports.values()), strict=True))
    stock, tickets = INVENTORY.configured(at["inventory"]), EVENTS.configured(at["events"])
    if "shops" in at:
        stock = _shops_at(at["shops"], stock)
    if "payments" in at:
        tickets = _paid_at(at["payments"], tickets)
    if "oauth_builtin" not in tickets.model_fields_set:
        tickets = tickets.model_copy(update={"oauth_builtin": True})
    stock, tickets = INVENTORY.ready(stock), EVENTS.ready(tickets)
    served = [INVENTORY.served(stock, at["inventory"]), EVENTS.served(tickets, at["events"])]
    _present_inventory(stock)
    account_id = None
    if "payments" in at:
        payments, account_id = _demo_payments(at["payments"], tickets)
        served.append(payments)
    sights = _present_events(tickets, account_id)
    if "shops" in at:
        shops, more = _demo_shops(at["shops"], stock)
        served.append(shops)
        sights += more
    if sights:
        typer.echo(typer.style("To look at in a browser", bold=True))
        for name, address in sights:
            typer.echo(f"  {name:<14} {address}")
        typer.echo("  The organizer's link signs in once, within 15 minutes.")
    typer.echo("Stop with Ctrl-C.")
    serving.serve(served)


def _beside(port: int | None, usual: int, is_usual: bool) -> int:
    """The port of a demonstration.

    is_usual    whether its service has its usual port
    """
    if port is not None:
        return port
    return usual if is_usual else 0


def _present_inventory(settings: "InventorySettings") -> None:
    import asyncio

    from holdfast.inventory import demo
    from holdfast.inventory.product import INVENTORY

    key, console = asyncio.run(INVENTORY.transact(settings, demo.begin))
    typer.echo(f"{typer.style('Inventory', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/auth.md")
    if key:
        typer.echo(f"  demo shop      {demo.DOMAIN}")
        typer.echo(f"  its key        {key}")
    else:
        typer.echo(f"  shops          {_program()} inventory shop list")
        typer.echo(f"  a shop's key   {_program()} inventory shop key SHOP_DOMAIN")
    if console:
        # The command looks at the settings, which do not know a port that was chosen here.
        place = "" if settings.base_url.endswith(f":{INVENTORY_PORT}") else f" --base-url {settings.base_url}"
        typer.echo(f"  storefront     {_program()} inventory sign-proxy-url {demo.DOMAIN}{place}")
        typer.echo(f"  console        {settings.base_url}{console}")
    else:
        typer.echo(f"  console        {_program()} inventory console-link SHOP_DOMAIN")


def _present_events(settings: "EventsSettings", account_id: str | None) -> list[Sight]:
    import asyncio

    from holdfast.events import demo
    from holdfast.events.product import EVENTS

    keys, sights = asyncio.run(EVENTS.transact(settings, partial(demo.begin, account_id=account_id)))
    typer.echo(f"{typer.style('Events', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/agents.md")
    typer.echo(f"  reference      {settings.base_url}/docs")
    typer.echo(f"  console        {settings.base_url}/console")
    if not settings.smtp_host:
        typer.echo(f"  mails          files in {settings.data_dir.resolve() / 'mail'}, also the link to sign in")
    if keys:
        typer.echo(f"  admin key      {keys.admin}")
        typer.echo(f"  organizer key  {keys.organizer}")
        typer.echo(f"  organizer      {demo.EMAIL}")
        typer.echo("  Keep these two keys: they are not shown again. If you lose one, make a new one:")
    else:
        typer.echo(f"  organizers     {_program()} events organizer list")
        typer.echo("  Keys are shown once. If you lost yours, make a new one:")
    typer.echo(f"  for an admin   {_program()} events key create --admin --name NAME")
    typer.echo(f"  for others     {_program()} events key create --organizer SLUG --name NAME")
    return [(name, settings.base_url + path) for name, path in sights]


def _paid_at(listener: "socket", settings: "EventsSettings") -> "EventsSettings":
    """The settings of the events service, with the payment processor for demonstrations."""
    from holdfast.events.payments.demo.processor import KEY, SECRET
    from holdfast.kit.sockets import address_of

    return settings.model_copy(
        update={"stripe_key": KEY, "stripe_webhook_secret": SECRET, "stripe_api": address_of(listener)}
    )


def _demo_payments(listener: "socket", settings: "EventsSettings") -> "tuple[Served, str]":
    """A payment processor that moves no money, for the events service, and an account there that can be paid."""
    from holdfast.events import demo
    from holdfast.events.payments.demo import beside
    from holdfast.kit.doubles.serving import served

    processor = beside.processor(listener, settings.base_url, settings.data_dir)
    typer.echo(f"{typer.style('Demo payments', bold=True)}  {processor.address}")
    typer.echo("  cards          4242 4242 4242 4242 pays, 4000 0000 0000 0002 is declined; no money moves")
    return served(processor.app, listener), processor.ready_account(demo.NAME, demo.EMAIL)


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


def _demo_shops(listener: "socket", settings: "InventorySettings") -> "tuple[Served, list[Sight]]":
    """A storefront platform that sells nothing, for the inventory service, and what to look at there."""
    from holdfast.inventory import demo, resources
    from holdfast.inventory.shopify.double import beside
    from holdfast.kit.sockets import address_of

    secret = resources.build(settings).client_secrets[0].decode()
    served = beside.served(listener, settings.base_url, secret, settings.data_dir, demo.DOMAIN)
    typer.echo(f"{typer.style('Demo shops', bold=True)}  {address_of(listener)}")
    address = f"{address_of(listener)}/{demo.DOMAIN}"
    return served, [
        ("demo shop", address),
        ("merchant", f"{address}/admin/apps/holdfast"),
        ("storefront", f"{address}/products/honey-jars"),
    ]


def _program() -> str:
    """How this program was called, so that the commands shown can be copied."""
    return sys.argv[0] if "/" in sys.argv[0] and len(sys.argv[0]) < 40 else "holdfast"
