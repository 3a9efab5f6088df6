"""`holdfast inventory …`: the commands of the inventory service alone. Each imports only what it needs."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.inventory.resources import Tx
    from holdfast.inventory.shops.model import Shop

ShopDomain = Annotated[str, typer.Argument(metavar="SHOP_DOMAIN", help="Such as my-shop.myshopify.com.")]

USUAL_PORT = 8001

shops = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Shops and their keys.")


@shops.command("add")
def add_shop(
    domain: ShopDomain,
    owner: Annotated[str, typer.Option(metavar="ADDRESS", help="Whose e-mail address signs in to its console.")] = "",
) -> None:
    """Make a shop, and print its key alone on the last line."""
    from holdfast.inventory.merchants import operations as merchants
    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations

    async def add(tx: "Tx") -> "tuple[Shop, str]":
        shop, key = await operations.add(tx, domain)
        if owner:
            await merchants.add_owner(tx, shop.id, owner)
        return shop, key

    shop, key = INVENTORY.transact_ready(add)
    typer.echo(f"Shop {shop.id}, {shop.domain}, shared inventory {shop.shared_inventory_id}.")
    typer.echo(key)


@shops.command("owner")
def add_owner(
    domain: ShopDomain, address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The e-mail address.")]
) -> None:
    """Name an owner of a shop.

    The owner of the e-mail address may sign in to the console of the shop. The owners who were named before still may.
    """
    from holdfast.inventory.merchants import operations as merchants
    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations
    from holdfast.kit.process import served_address

    async def add(tx: "Tx") -> "Shop":
        shop = await operations.find(tx, domain)
        await merchants.add_owner(tx, shop.id, address)
        return shop

    shop, _ = INVENTORY.transact_existing(add)
    settings = INVENTORY.configured()
    served = served_address.served_address(settings, USUAL_PORT)
    typer.echo(f"{address.strip().lower()} signs in to {shop.domain} at {served}/console.")


@shops.command("list")
def list_shops() -> None:
    """List the shops, oldest first.

    A line each, with tabs between: id, domain, id of the shared inventory, whether it is connected with the platform.
    """
    from holdfast.inventory.installs.operations import connection_statuses
    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations

    async def read(tx: "Tx") -> "tuple[Sequence[Shop], dict[int, str]]":
        return await operations.list(tx), await connection_statuses(tx)

    (stored_shops, connected), location = INVENTORY.transact_existing(read)
    for shop in stored_shops:
        status = connected.get(shop.id, "not connected")
        typer.echo(f"{shop.id}\t{shop.domain}\t{shop.shared_inventory_id}\t{status}")
    typer.echo(f"Looked in {location}.", err=True)


@shops.command("locations")
def show_locations(
    domain: ShopDomain,
    share: Annotated[
        list[str] | None, typer.Option(help="LOCATION=PERCENT: its share of each quantity; may be given several times.")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Let each location show the whole quantity.")] = False,
) -> None:
    """List or set the locations of a shop.

    Without an option it lists them; the options say how quantities are spread over them. A line each, with tabs
    between: id, name, its share in percent; `all` if it shows the whole quantity, as others do.
    """
    if share and everywhere:
        raise typer.BadParameter("--share does not go with --all.")

    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations
    from holdfast.inventory.sync import operations as sync
    from holdfast.inventory.sync.model import LocationPercent, Spreading

    shares: list[LocationPercent] = []
    for option in share or ():
        gid, _, percent = option.rpartition("=")
        if not (percent.isascii() and percent.isdecimal() and len(percent) <= 3):
            raise typer.BadParameter(f"{option} is not such as gid://shopify/Location/1=70.")
        shares.append(LocationPercent(gid, int(percent)))

    async def read(tx: "Tx") -> "Spreading":
        return await sync.spreading(tx, (await operations.find(tx, domain)).id)

    async def spread(tx: "Tx") -> "Spreading":
        return await sync.spread(tx, (await operations.find(tx, domain)).id, shares)

    spreading = INVENTORY.transact_ready(spread) if shares or everywhere else INVENTORY.transact_existing(read)[0]
    for location in spreading.locations:
        percent = "all" if spreading.rule == "all" and location.percent else location.percent
        typer.echo(f"{location.gid}\t{location.name}\t{percent}")
    if spreading.warning:
        typer.echo(spreading.warning, err=True)


@shops.command("key")
def show_key(
    domain: ShopDomain,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Make a new key; the old one is invalid at once.")
    ] = False,
    scope: Annotated[
        list[str] | None, typer.Option(help="With --regenerate: a scope of the new key; may be given several times.")
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End the key at once; the shop has none until you make a new one.")
    ] = False,
) -> None:
    """Print, renew or end the key of a shop.

    The key stands alone on the last line.
    """
    if revoke and regenerate:
        raise typer.BadParameter("--revoke does not go with --regenerate.")
    if scope and not regenerate:
        raise typer.BadParameter("--scope goes with --regenerate.")

    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations
    from holdfast.kit.contract.problems import CannotStart

    async def show(tx: "Tx") -> str:
        return await operations.show_key(tx, (await operations.find(tx, domain)).id)

    async def renew(tx: "Tx") -> str:
        return await operations.regenerate_key(tx, (await operations.find(tx, domain)).id, scope)

    async def end(tx: "Tx") -> None:
        if not await operations.end_key(tx, (await operations.find(tx, domain)).id):
            raise CannotStart(f"The shop {domain} has no key.")

    if revoke:
        INVENTORY.transact_existing(end)
        typer.echo(f"The key of {domain} is revoked. A new one: holdfast inventory shop key {domain} --regenerate")
        return
    typer.echo(INVENTORY.transact_ready(renew) if regenerate else INVENTORY.transact_existing(show)[0])


def webhooks(
    retry: Annotated[int | None, typer.Option(help="Id of a webhook to try again now.")] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="Try all of them again now.")] = False,
) -> None:
    """List partner webhooks that failed, or try them again.

    They are webhooks of the platform that could not be handled: parked, or tried again later.
    """
    from holdfast.inventory.partner_webhooks import inbox
    from holdfast.inventory.service import INVENTORY

    if retry is not None or retry_all:
        again, _ = INVENTORY.transact_existing(lambda tx: inbox.retry(tx, retry))
        typer.echo(f"Tried again: {again}.")
        return
    deliveries, location = INVENTORY.transact_existing(inbox.list_retrying_and_parked)
    for delivery in deliveries:
        again = (
            f", again at {delivery.next_attempt_at.isoformat(timespec='seconds')}" if delivery.next_attempt_at else ""
        )
        attempts = f"after {delivery.attempts} attempts{again}"
        typer.echo(f"{delivery.id}\t{delivery.domain}\t{delivery.topic}\t{attempts}\t{delivery.error}")
    if len(deliveries) == inbox.MAX_LISTED:
        typer.echo(f"These are the newest {len(deliveries)}; there may be more.")
    elif deliveries:
        parked = sum(delivery.next_attempt_at is None for delivery in deliveries)
        retrying = len(deliveries) - parked
        typer.echo(f"Parked webhooks: {parked}. Webhooks that wait for another attempt: {retrying}.")
    else:
        typer.echo("No webhook is parked or waits.")
    typer.echo(f"Looked in {location}.", err=True)


def console_link(
    domain: ShopDomain,
    base_url: Annotated[str, typer.Option(help="Another address of the service than the one where it is served.")] = "",
) -> None:
    """Print a link to the console of a shop.

    It signs in the owner of the shop who was named first, once, within 15 minutes.
    """
    from holdfast.accounts.signin import links
    from holdfast.inventory.merchants import operations as merchants
    from holdfast.inventory.resources import build
    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shops import operations
    from holdfast.kit.process import served_address

    async def make(tx: "Tx") -> int:
        return await merchants.console_link(tx, (await operations.find(tx, domain)).id)

    id, _ = INVENTORY.transact_existing(make)
    settings = INVENTORY.configured()
    served = base_url.rstrip("/") or served_address.served_address(settings, USUAL_PORT)
    typer.echo(links.link_url(build(settings).secret, served, id))


def sign_proxy_url(
    domain: ShopDomain,
    base_url: Annotated[str, typer.Option(help="Another address of the service than the one where it is served.")] = "",
) -> None:
    """Print a signed address for a storefront.

    It is signed as the storefront platform signs, and is good for 90 seconds.
    """
    from holdfast.inventory.availability.storefront import AVAILABILITY
    from holdfast.inventory.resources import build
    from holdfast.inventory.service import INVENTORY
    from holdfast.inventory.shopify import signatures
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.process import database_location, served_address
    from holdfast.kit.process.resources import secret_file

    settings = INVENTORY.configured()
    if not (settings.client_secret or settings.secret_key or secret_file(settings).exists()):
        raise CannotStart(
            f"There is no secret of the inventory service in {database_location.location_text(settings)}."
        )
    query = signatures.sign_proxy_query(domain, build(settings).client_secrets[0], time.time())
    served = base_url.rstrip("/") or served_address.served_address(settings, USUAL_PORT)
    typer.echo(f"{served}{AVAILABILITY}?{query}")
