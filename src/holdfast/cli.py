"""The command line: `holdfast up`, and the parts it is made of."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from holdfast.events import api as events_api
from holdfast.events import demo as events_demo
from holdfast.events import settings as events_settings
from holdfast.events.keys.model import ApiKey, CreateKey
from holdfast.events.keys.operations import create, mint
from holdfast.events.oauth import commands as oauth
from holdfast.events.photos.store import NotInstalled
from holdfast.inventory import api as inventory_api
from holdfast.inventory import demo as inventory_demo
from holdfast.inventory import settings as inventory_settings
from holdfast.inventory.availability.storefront import AVAILABILITY
from holdfast.inventory.shopify import proxy
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock import audit
from holdfast.kit import process
from holdfast.kit.command import check
from holdfast.kit.operation import ADMIN
from holdfast.kit.problems import Problem
from holdfast.kit.process import CannotStart, Product, Served
from holdfast.kit.secrets import TooShort, Unreadable

say = partial(Console(highlight=False).print, soft_wrap=True)
complain = partial(Console(highlight=False, stderr=True).print, soft_wrap=True)

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")]
ShopDomain = Annotated[str, typer.Argument(metavar="SHOP_DOMAIN", help="Such as my-shop.myshopify.com.")]

EVENTS = Product(
    name="events",
    title="Holdfast Events",
    port=8002,
    settings=events_settings.Settings,
    build=events_api.service,
    migrations=Path(events_api.__file__).parent / "migrations",
    factory="holdfast.cli:events_app",
)
INVENTORY = Product(
    name="inventory",
    title="Holdfast Inventory",
    port=8001,
    settings=inventory_settings.Settings,
    build=inventory_api.service,
    migrations=Path(inventory_api.__file__).parent / "migrations",
    factory="holdfast.cli:inventory_app",
    tenancy=inventory_settings.TENANCY,
)
events_app, inventory_app = EVENTS.worker, INVENTORY.worker


def main() -> None:
    """Run a command. What an operator has to see to is said in a line."""
    try:
        app()
    except (CannotStart, NotInstalled, TooShort, Unreadable) as error:
        complain(str(error))
        raise SystemExit(1) from error
    except Problem as problem:
        complain(f"{problem.message} {problem.extra.get('errors', '')}".rstrip())
        raise SystemExit(1) from problem


def commands(product: Product[Any], help: str) -> typer.Typer:
    """What every service can be told: serve, worker, migrate."""
    group = typer.Typer(no_args_is_help=True, help=help)

    @group.command(help=f"Serve {product.title}: its doors and, unless told otherwise, its background work.")
    def serve(
        host: Host = "127.0.0.1",
        port: Port = product.port,
        workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
        background: Annotated[bool, typer.Option(help="Do background work in this process too.")] = True,
    ) -> None:
        listener = process.listen(host, port)
        settings = product.ready(product.configured(listener))
        say(f"{product.title} listens on {settings.base_url}")
        product.serve(settings, listener, background=background, workers=workers)

    @group.command(help="Do the background work alone.")
    def worker() -> None:
        settings = product.ready(product.configured())
        product.work(settings, lambda: say(f"{product.title} works in the background. Stop with Ctrl-C."))

    @group.command("migrate", help="Bring the schema of the database up to date.")
    def migrate(
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be applied, change nothing.")] = False,
    ) -> None:
        url = product.configured().url
        names = product.pending(url) if dry_run else product.migrate(url)
        done = "would apply" if dry_run else "applied"
        say("\n".join(f"{done} {name}" for name in names) or "The schema is up to date.")

    _ = serve, worker, migrate
    return group


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hand out what is scarce: exactly, in order, losing nothing.",
)
events = commands(EVENTS, "Events, registrations and waiting rooms.")
keys = typer.Typer(no_args_is_help=True, help="API keys of the events service.")
inventory = commands(INVENTORY, "Shared inventory pools of storefront shops.")
shop = typer.Typer(no_args_is_help=True, help="Shops and their keys.")
app.add_typer(events, name="events")
events.add_typer(keys, name="key")
events.add_typer(oauth.commands(EVENTS), name="organizer")
app.add_typer(inventory, name="inventory")
inventory.add_typer(shop, name="shop")


@app.command()
def up(host: Host = "127.0.0.1", inventory_port: Port = INVENTORY.port, events_port: Port = EVENTS.port) -> None:
    """Start both services on the embedded database, with demo data on the first start."""
    stock = process.listen(host, inventory_port)
    stock_settings = INVENTORY.ready(INVENTORY.configured(stock))
    tickets = process.listen(host, events_port)
    tickets_settings = EVENTS.ready(EVENTS.configured(tickets))
    _present_inventory(stock_settings)
    _present_events(tickets_settings)
    say("Stop with Ctrl-C.")
    process.serve(
        [
            Served(INVENTORY.app(stock_settings, background=True), stock_settings, stock),
            Served(EVENTS.app(tickets_settings, background=True), tickets_settings, tickets),
        ]
    )


def _present_inventory(settings: inventory_settings.Settings) -> None:
    planted = asyncio.run(INVENTORY.transact(settings, inventory_demo.plant))
    say(f"[bold]Inventory[/]  {settings.base_url}")
    say(f"  for agents     {settings.base_url}/mcp")
    say(f"  how to begin   {settings.base_url}/auth.md")
    if planted:
        say(f"  demo shop      {planted.domain}")
        say(f"  its key        {planted.key}")
        say(f"  storefront     holdfast inventory sign-proxy-url {planted.domain}")
    else:
        say("  The demo shop's key, again: holdfast inventory shop key demo.myshopify.com")


def _present_events(settings: events_settings.Settings) -> None:
    planted = asyncio.run(EVENTS.transact(settings, events_demo.plant))
    say(f"[bold]Events[/]  {settings.base_url}")
    say(f"  for agents     {settings.base_url}/mcp")
    say(f"  how to begin   {settings.base_url}/agents.md")
    say(f"  reference      {settings.base_url}/docs")
    if planted:
        say(f"  admin key      {planted.admin_key}")
        say(f"  organizer key  {planted.organizer_key}")
        say(f"  demo event     {settings.base_url}/api/events/{planted.event_id}")
        say(f"  waiting room   {settings.base_url}/queues/{planted.queue_id}")
        say("  Keep these keys: they are not shown again.")
    else:
        say("  Its keys were shown on the first start. Another: holdfast events key create --admin --name NAME")


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    admin: Annotated[bool, typer.Option("--admin", help="A key that may do everything.")] = False,
    organizer: Annotated[int | None, typer.Option(help="Id of the organizer the key acts for.")] = None,
) -> None:
    """Make an API key and print it, once, alone on the last line."""
    if admin == (organizer is not None):
        raise typer.BadParameter("Say either --admin or --organizer ID.")

    async def make(tx: events_settings.Tx) -> ApiKey:
        command = check(CreateKey, {"name": name, "user_id": organizer})
        return await mint(tx, None, command.name) if admin else await create(tx, ADMIN, command)

    key = asyncio.run(EVENTS.transact(EVENTS.ready(EVENTS.configured()), make))
    say(f"Key {key.id}, {name}. It is not shown again.")
    print(key.key)


@shop.command("add")
def add_shop(domain: ShopDomain) -> None:
    """Make a shop, and print its key alone on the last line."""
    made, key = _in_inventory(lambda tx: shops.add(tx, domain))
    say(f"Shop {made.id}, {made.domain}, shared inventory {made.shared_inventory_id}.")
    print(key)


@shop.command("key")
def show_key(
    domain: ShopDomain,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Make a new key; the old one is invalid at once.")
    ] = False,
    scope: Annotated[
        list[str] | None, typer.Option(help="With --regenerate: a scope of the new key; may be given several times.")
    ] = None,
) -> None:
    """Print the key of a shop, alone on the last line."""
    if scope and not regenerate:
        raise typer.BadParameter("--scope goes with --regenerate.")

    async def work(tx: inventory_settings.Tx) -> str:
        found = await shops.find(tx, domain)
        return await (shops.regenerate_key(tx, found.id, scope) if regenerate else shops.show_key(tx, found.id))

    print(_in_inventory(work))


@inventory.command("sign-proxy-url")
def sign_proxy_url(
    domain: ShopDomain,
    base_url: Annotated[str, typer.Option(help="Where the service is served, if not where its settings say.")] = "",
) -> None:
    """Print an address of the storefront endpoint signed as the storefront platform would, good for 90 seconds."""
    settings = INVENTORY.configured()
    query = proxy.sign(domain, settings.client_secrets[0], time.time())
    served = base_url.rstrip("/") or settings.base_url or f"http://127.0.0.1:{INVENTORY.port}"
    print(f"{served}{AVAILABILITY}?{query}")


@inventory.command("check")
def check_ledger() -> None:
    """Compare every pool with the sum of its ledger, and every hold with what is kept for it."""
    wrong = 0
    for shop_id in _in_inventory(audit.shops):
        for difference in _in_inventory(lambda tx, shop_id=shop_id: audit.audit(tx, shop_id)):
            complain(difference)
            wrong += 1
    if wrong:
        raise typer.Exit(1)
    say("Every pool holds what its ledger says.")


def _in_inventory(work: Callable[[inventory_settings.Tx], Any]) -> Any:
    return asyncio.run(INVENTORY.transact(INVENTORY.ready(INVENTORY.configured()), work))


if __name__ == "__main__":
    main()
