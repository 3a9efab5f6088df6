"""`holdfast inventory …`: what operators can tell the inventory service alone. Commands import what only they need."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from holdfast.inventory.resources import Tx

T = TypeVar("T")

ShopDomain = Annotated[str, typer.Argument(metavar="SHOP_DOMAIN", help="Such as my-shop.myshopify.com.")]

shops = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Shops and their keys.")


@shops.command("add")
def add_shop(domain: ShopDomain) -> None:
    """Make a shop, and print its key alone on the last line."""
    from holdfast.inventory.shops import operations

    made, key = _transact(lambda tx: operations.add(tx, domain))
    typer.echo(f"Shop {made.id}, {made.domain}, shared inventory {made.shared_inventory_id}.")
    typer.echo(key)


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

    from holdfast.inventory.shops import operations

    async def work(tx: "Tx") -> str:
        found = await operations.find(tx, domain)
        return await (
            operations.regenerate_key(tx, found.id, scope) if regenerate else operations.show_key(tx, found.id)
        )

    typer.echo(_transact(work))


def sign_proxy_url(
    domain: ShopDomain,
    base_url: Annotated[str, typer.Option(help="Where the service is served, if not where its settings say.")] = "",
) -> None:
    """Print an address of the storefront endpoint signed as the storefront platform would, good for 90 seconds."""
    from holdfast.inventory.availability.storefront import AVAILABILITY
    from holdfast.inventory.product import INVENTORY
    from holdfast.inventory.resources import build
    from holdfast.inventory.shopify import proxy

    settings = INVENTORY.configured()
    query = proxy.sign(domain, build(settings).client_secrets[0], time.time())
    served = base_url.rstrip("/") or settings.base_url or "http://127.0.0.1:8001"
    typer.echo(f"{served}{AVAILABILITY}?{query}")


def check_ledger() -> None:
    """Compare every pool with the sum of its ledger, and every hold with what is kept for it."""
    from holdfast.inventory.stock import audit

    wrong = 0
    for shop_id in _transact(audit.shops):
        for difference in _transact(lambda tx, shop_id=shop_id: audit.audit(tx, shop_id)):
            typer.echo(difference, err=True)
            wrong += 1
    if wrong:
        raise typer.Exit(1)
    typer.echo("Every pool holds what its ledger says.")


def _transact(work: "Callable[[Tx], Awaitable[T]]") -> T:
    from holdfast.inventory.product import INVENTORY

    return asyncio.run(INVENTORY.transact(INVENTORY.ready(INVENTORY.configured()), work))
