"""`holdfast inventory …`: what operators can tell the inventory service alone. Commands import what only they need."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.inventory.resources import Tx

ShopDomain = Annotated[str, typer.Argument(metavar="SHOP_DOMAIN", help="Such as my-shop.myshopify.com.")]

shops = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Shops and their keys.")


@shops.command("add")
def add_shop(domain: ShopDomain) -> None:
    """Make a shop, and print its key alone on the last line."""
    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.shops import operations

    made, key = INVENTORY.change(lambda tx: operations.add(tx, domain))
    typer.echo(f"Shop {made.id}, {made.domain}, shared inventory {made.shared_inventory_id}.")
    typer.echo(key)


@shops.command("list")
def list_shops() -> None:
    """List the shops, oldest first.

    A line each, with tabs between: id, domain, id of the shared inventory.
    """
    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.shops import operations

    found, place = INVENTORY.look(operations.list)
    for each in found:
        typer.echo(f"{each.id}\t{each.domain}\t{each.shared_inventory_id}")
    typer.echo(f"Looked in {place}.", err=True)


@shops.command("key")
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

    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.shops import operations

    async def show(tx: "Tx") -> str:
        return await operations.show_key(tx, (await operations.find(tx, domain)).id)

    async def renew(tx: "Tx") -> str:
        return await operations.regenerate_key(tx, (await operations.find(tx, domain)).id, scope)

    typer.echo(INVENTORY.change(renew) if regenerate else INVENTORY.look(show)[0])


def sign_proxy_url(
    domain: ShopDomain,
    base_url: Annotated[str, typer.Option(help="Where the service is served, if not where its settings say.")] = "",
) -> None:
    """Print an address of the storefront endpoint signed as the storefront platform would, good for 90 seconds."""
    from holdfast.inventory.availability.storefront import AVAILABILITY
    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.resources import build
    from holdfast.inventory.shopify import proxy
    from holdfast.kit.problems import CannotStart
    from holdfast.kit.resources import secret_file

    settings = INVENTORY.configured()
    if not (settings.client_secret or settings.secret_key or secret_file(settings).exists()):
        raise CannotStart(f"There is no secret of the inventory service in {INVENTORY.place(settings)}.")
    query = proxy.sign(domain, build(settings).client_secrets[0], time.time())
    served = base_url.rstrip("/") or settings.base_url or "http://127.0.0.1:8001"
    typer.echo(f"{served}{AVAILABILITY}?{query}")


def check_ledger() -> None:
    """Compare every pool with the sum of its ledger, and every hold with what is kept for it."""
    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.stock import audit

    shop_ids, place = INVENTORY.look(audit.shops)
    differences = [
        each for shop_id in shop_ids for each in INVENTORY.look(lambda tx, shop_id=shop_id: audit.audit(tx, shop_id))[0]
    ]
    for each in differences:
        typer.echo(each, err=True)
    typer.echo(f"Looked in {place}.", err=True)
    if differences:
        raise typer.Exit(1)
    typer.echo("Every pool holds what its ledger says.")
