"""`holdfast up`: both services in one process, with demo data on the first start; and the commands for demonstrations.

Demo data and demonstrations are in the package holdfast-demo. Without it, `up` starts the services alone.
"""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from holdfast.kit.environment.program import called_as
from holdfast.kit.process.startup import importing
from holdfast.kit.webhooks import LISTEN_PORT, listen_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from holdfast.events.settings import Settings as EventsSettings
    from holdfast.inventory.settings import Settings as InventorySettings
    from holdfast.kit.process.serving import ServedService

INVENTORY_PORT = 8001
EVENTS_PORT = 8002

LOOPBACK = ("127.0.0.1", "localhost", "::1")

MISSING_DEMO = "Demonstrations need the package holdfast-demo; docs/deploy.md says how to install it."

DEMO_CLIENT_ID = "holdfast-demo"
"""The client id of the app in demo shops."""

S = TypeVar("S", "EventsSettings", "InventorySettings")

Sight = tuple[str, str]
"""A name and a URL to open in a browser."""

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]
FirstPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65_532,
        help="Inventory takes this port; events, demo payments and demo shops take the next three. 0 picks free ones. "
        "Default: HOLDFAST_PORT, or 8001.",
    ),
]
InventoryPort = Annotated[int | None, typer.Option(help="Port of inventory alone.")]
EventsPort = Annotated[int | None, typer.Option(help="Port of events alone.")]
PaymentsPort = Annotated[
    int | None, typer.Option(help="Port of the demo payments alone; any free one if events has a port of its own.")
]
ShopsPort = Annotated[
    int | None, typer.Option(help="Port of the demo shops alone; any free one if inventory has a port of its own.")
]


def has_demo() -> bool:
    """Whether the package holdfast-demo is installed."""
    return find_spec("holdfast_demo") is not None


def up(
    host: Host = "127.0.0.1",
    port: FirstPort = None,
    inventory_port: InventoryPort = None,
    events_port: EventsPort = None,
    payments_port: PaymentsPort = None,
    shops_port: ShopsPort = None,
) -> None:
    """Start both services, ready to be tried out.

    They run on the bundled database, with demo data on the first start. Unless there are real ones in the settings, a
    storefront platform and a payment processor for demonstrations start too. The one sells nothing, the other charges
    no money.
    """
    with importing():
        from holdfast.events.service import EVENTS
        from holdfast.inventory.service import INVENTORY
        from holdfast.kit.contract.problems import CannotStart
        from holdfast.kit.http import sockets
        from holdfast.kit.process import served_address, serving

    # A visitor of the demonstrations can act as a merchant or pay, so other machines reach them only if the operator
    # chooses so. A base URL means that there is a proxy, which leads other machines to an address of this machine.
    is_ours = host in LOOPBACK and not (INVENTORY.configured().base_url or EVENTS.configured().base_url)
    usual = _usual_ports(INVENTORY.configured().first_port if port is None else port)
    ports = {
        "inventory": usual["inventory"] if inventory_port is None else inventory_port,
        "events": usual["events"] if events_port is None else events_port,
    }
    if not has_demo():
        if shops_port is not None or payments_port is not None:
            raise CannotStart(MISSING_DEMO)
        typer.echo(f"Demo data, payments and shops are left out. {MISSING_DEMO}")
        is_ours = False
    if not INVENTORY.configured().client_id and (is_ours or shops_port is not None):
        ports["shops"] = _demo_port(shops_port, usual["shops"], ports["inventory"] == usual["inventory"])
    if not EVENTS.configured().takes_payments and (is_ours or payments_port is not None):
        ports["payments"] = _demo_port(payments_port, usual["payments"], ports["events"] == usual["events"])
    listeners = dict(zip(ports, sockets.listen_all(host, *ports.values()), strict=True))
    stock, tickets = INVENTORY.configured(listeners["inventory"]), EVENTS.configured(listeners["events"])
    if "shops" in listeners:
        stock = _with_demo_shops(listeners["shops"], stock)
    if "oauth_builtin" not in tickets.model_fields_set:
        tickets = tickets.model_copy(update={"oauth_builtin": True})
    if is_ours:
        stock, tickets = _with_webhook_port(stock), _with_webhook_port(tickets)
    stock, tickets = INVENTORY.ready(stock), EVENTS.ready(tickets)
    for settings in (stock, tickets):
        served_address.store_served_address(settings)
    if "payments" in listeners:
        tickets = _with_demo_payments(listeners["payments"], tickets)
    served = [INVENTORY.served(stock, listeners["inventory"]), EVENTS.served(tickets, listeners["events"])]
    _present_inventory(stock)
    account_id = None
    if "payments" in listeners:
        payments, account_id = _demo_payments(listeners["payments"], tickets)
        served.append(payments)
    sights = _present_events(tickets, account_id)
    # Mails have links that sign in. So a missing mail server alone is no reason to show them.
    sights += _demo_mails(served[1], tickets) if is_ours and not tickets.smtp_host else []
    sights += _demo_components(served, tickets) if is_ours else []
    if "shops" in listeners:
        shops, more = _demo_platform(listeners["shops"], stock)
        served.append(shops)
        sights += more
    if port_of_trials := tickets.webhook_test_port:
        _present_webhooks(port_of_trials)
    _present_sights(sights)
    typer.echo("Stop with Ctrl-C.")
    serving.serve(served)


def demo() -> None:
    """Store example data for both services.

    Prints addresses and keys. The services are started by `serve`, before or after. Example data is stored only in an
    empty database. Nothing can be paid, and the shop is connected to no platform: `up` starts demonstrations of both.
    """
    with importing():
        from holdfast.events.service import EVENTS
        from holdfast.inventory.service import INVENTORY
        from holdfast.kit.contract.problems import CannotStart
        from holdfast.kit.process import served_address

    if not has_demo():
        raise CannotStart(MISSING_DEMO)
    stock, tickets = INVENTORY.ready(INVENTORY.configured()), EVENTS.ready(EVENTS.configured())
    _present_inventory(stock.served_at(served_address.served_address(stock, INVENTORY_PORT)))
    _present_sights(_present_events(tickets.served_at(served_address.served_address(tickets, EVENTS_PORT)), None))


def demo_shops(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8004,
    app_address: Annotated[str, typer.Option(help="Where the inventory service is served.")] = "http://127.0.0.1:8001",
    client_id: Annotated[str, typer.Option(help="The app's client id.")] = DEMO_CLIENT_ID,
    client_secret: Annotated[str, typer.Option(help="The app's client secret; without it, a random one.")] = "",
    file: Annotated[Path | None, typer.Option(help="Keep everything in this file; without it, in memory.")] = None,
    shop: Annotated[list[str] | None, typer.Option(help="A shop to begin with; may be given several times.")] = None,
    for_tests: Annotated[bool, typer.Option(help="Serve the API for tests, below /_test/.")] = False,
) -> None:
    """Serve demo shops to try the app at.

    They are a storefront platform of our own, where nothing is sold.
    """
    from holdfast.kit.contract.problems import CannotStart

    if not has_demo():
        raise CannotStart(MISSING_DEMO)

    from secrets import token_urlsafe

    from holdfast.kit.http.sockets import address_of, listen_all
    from holdfast.kit.process.serving import serve
    from holdfast.kit.security.service_secret import secret
    from holdfast_demo.shared.serving import guarded_server
    from holdfast_demo.shopify import testing
    from holdfast_demo.shopify.application import ShopifyDouble
    from holdfast_demo.shopify.platform_state import App

    (listener,) = listen_all(host, port)
    random = not client_secret
    if random:
        client_secret = secret("", file.with_suffix(".secret")).value.decode() if file else token_urlsafe(32)
    double = ShopifyDouble(address_of(listener), App(client_id, client_secret, app_address.rstrip("/")), path=file)
    for domain in shop or ():
        double.begin(domain)
    if for_tests:
        double.app.router.routes[:0] = testing.routes(double)
    typer.echo(f"Demo shops  {double.address}")
    if random:
        typer.echo(f"  INVENTORY_CLIENT_SECRET={client_secret}")
    try:
        serve([guarded_server(double.app, listener)])
    finally:
        double.close()


def _present_sights(sights: "list[Sight]") -> None:
    if not sights:
        return
    typer.echo(typer.style("To look at in a browser", bold=True))
    for name, address in sights:
        typer.echo(f"  {name:<14} {address}")
    typer.echo("  The organizer's link signs in once, within 15 minutes.")


def _present_webhooks(port: int) -> None:
    typer.echo(f"{typer.style('Webhooks', bold=True)}  add http://127.0.0.1:{port}/ in a console, under Webhooks")
    typer.echo(f"  listen there   {listen_command(port, 'WHSEC')}")


def _usual_ports(first: int) -> dict[str, int]:
    """The port of each service if none is chosen for it alone. 0 means any free one."""
    services = ("inventory", "events", "payments", "shops")
    return {name: first and first + offset for offset, name in enumerate(services)}


def _demo_port(port: int | None, usual: int, is_usual: bool) -> int:
    """The port of a demonstration service.

    is_usual    whether the service that it belongs to has its usual port
    """
    if port is not None:
        return port
    return usual if is_usual else 0


def _present_inventory(settings: "InventorySettings") -> None:
    key, owner, domain = None, None, "SHOP_DOMAIN"
    if has_demo():
        import asyncio

        from holdfast.inventory.service import INVENTORY
        from holdfast_demo.data import inventory

        key, owner = asyncio.run(INVENTORY.transact(settings, inventory.begin))
        domain = inventory.DOMAIN if key or owner else domain
    typer.echo(f"{typer.style('Inventory', bold=True)}  {settings.base_url}")
    typer.echo(f"  for agents     {settings.base_url}/mcp")
    typer.echo(f"  how to begin   {settings.base_url}/auth.md")
    if key:
        typer.echo(f"  demo shop      {domain}")
        typer.echo(f"  its key        {key}")
    else:
        typer.echo(f"  shops          {called_as()} inventory shop list")
        typer.echo(f"  a shop's key   {called_as()} inventory shop key SHOP_DOMAIN")
    if not settings.smtp_host:
        typer.echo(f"  mails          files in {settings.data_dir.resolve() / 'mail'}, also the link to sign in")
    if owner:
        typer.echo(f"  storefront     {called_as()} inventory sign-proxy-url {domain}")
        typer.echo(f"  owner          {owner.email}")
        typer.echo(f"  console        {settings.base_url}{owner.path}")
        typer.echo("  This link signs the owner in once, within 15 minutes. A command for another:")
    typer.echo(f"  a link         {called_as()} inventory console-link {domain if owner else 'SHOP_DOMAIN'}")


def _present_events(settings: "EventsSettings", account_id: str | None) -> list[Sight]:
    keys, organizer, slug, sights = None, "", "SLUG", list[Sight]()
    if has_demo():
        import asyncio

        from holdfast.events.service import EVENTS
        from holdfast_demo.data import events

        keys, sights = asyncio.run(EVENTS.transact(settings, partial(events.begin, account_id=account_id)))
        organizer = events.EMAIL
        slug = events.SLUG if any(name == "organizer" for name, _ in sights) else slug
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
        typer.echo(f"  organizer      {organizer}")
        typer.echo("  Keep these two keys: they are shown once. If you lose one, make a new one:")
    else:
        typer.echo(f"  organizers     {called_as()} events organizer list")
        typer.echo("  Keys are shown once. If you lost yours, make a new one:")
    typer.echo(f"  for an admin   {called_as()} events key create --admin --name NAME")
    typer.echo(f"  for others     {called_as()} events key create --organizer SLUG --name NAME")
    typer.echo("  An organizer signs in with a link, once, within 15 minutes. A command prints one:")
    typer.echo(f"  a link         {called_as()} events console-link {slug}")
    return [(name, settings.base_url + path) for name, path in sights]


def _demo_mails(served: "ServedService", settings: "EventsSettings") -> list[Sight]:
    """Put a viewer of the mails of both services in front of the events service. Returns its name and URL."""
    from holdfast_demo.mails.viewer import MAILS_PATH, with_viewer

    served.config.app = with_viewer(served.config.app, settings.data_dir / "mail", settings.base_url)  # pyright: ignore[reportArgumentType] - an application, not its name
    return [("mails", settings.base_url + MAILS_PATH)]


def _demo_components(served: "Sequence[ServedService]", settings: "EventsSettings") -> list[Sight]:
    """Put the gallery of components in front of both services. Returns its name and URL."""
    from holdfast_demo.shared.gallery import COMPONENTS_PATH, with_gallery

    for service in served[:2]:
        service.config.app = with_gallery(service.config.app)  # pyright: ignore[reportArgumentType] - an application, not its name
    return [("components", settings.base_url + COMPONENTS_PATH)]


def _with_webhook_port(settings: "S") -> "S":
    """The settings of a service with the port of `holdfast webhooks listen`."""
    if "webhook_test_port" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"webhook_test_port": LISTEN_PORT})


def _with_demo_payments(listener: "socket", settings: "EventsSettings") -> "EventsSettings":
    """The settings of the events service with the payment processor for demonstrations."""
    from holdfast.kit.http.sockets import address_of
    from holdfast_demo.stripe.processor import secrets_in

    ours = secrets_in(settings.data_dir)
    return settings.model_copy(
        update={"stripe_key": ours.api, "stripe_webhook_secret": ours.webhooks, "stripe_api": address_of(listener)}
    )


def _demo_payments(listener: "socket", settings: "EventsSettings") -> "tuple[ServedService, str]":
    """A payment processor that moves no money, for the events service, and the id of an account that can be paid."""
    from holdfast_demo.data import events
    from holdfast_demo.shared.serving import guarded_server
    from holdfast_demo.stripe.processor import demo_processor

    processor = demo_processor(listener, settings.base_url, settings.data_dir)
    typer.echo(f"{typer.style('Demo payments', bold=True)}  {processor.address}")
    typer.echo("  cards          4242 4242 4242 4242 pays, 4000 0000 0000 0002 is declined;")
    typer.echo("                 no money moves")
    return guarded_server(processor.app, listener), processor.ready_account(events.NAME, events.EMAIL)


def _with_demo_shops(listener: "socket", settings: "InventorySettings") -> "InventorySettings":
    """The settings of the inventory service with demo shops as its platform."""
    from holdfast.kit.http.sockets import address_of
    from holdfast_demo.shopify import CLIENT_ID, site

    address = address_of(listener)
    return settings.model_copy(
        update={
            "platform_address": f"{address}/{{shop}}",
            "client_id": CLIENT_ID,
            "app_bridge": f"{address}{site.BRIDGE}",
        }
    )


def _demo_platform(listener: "socket", settings: "InventorySettings") -> "tuple[ServedService, list[Sight]]":
    """A storefront platform that sells nothing, for the inventory service, and its names and URLs for a browser."""
    from holdfast.inventory import resources
    from holdfast.kit.http.sockets import address_of
    from holdfast_demo.data import inventory
    from holdfast_demo.shopify import application

    secret = resources.build(settings).client_secrets[0].decode()
    served = application.platform_server(listener, settings.base_url, secret, settings.data_dir, inventory.DOMAIN)
    typer.echo(f"{typer.style('Demo shops', bold=True)}  {address_of(listener)}")
    address = f"{address_of(listener)}/{inventory.DOMAIN}"
    return served, [
        ("demo shop", address),
        ("merchant", f"{address}/admin/apps/holdfast"),
        ("storefront", f"{address}/products/honey-jars"),
    ]
