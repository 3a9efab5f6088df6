"""Installs the app at a shop: stores what the platform has granted, and gives the shop its key."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from holdfast.inventory.installs import access, sql
from holdfast.inventory.installs.model import Install
from holdfast.inventory.problems import MISSING_SCOPES
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.scopes import missing_scopes
from holdfast.inventory.shopify.token_endpoint import GrantedTokens
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.webhooks import inbox
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE

InstallHooks = Sequence[Callable[[Tx, int], Awaitable[None]]]
"""The hooks after an install, in its transaction: each gets the id of the shop, and enqueues its own work."""


class InstalledShop(Struct, frozen=True):
    """A shop that has the app. `key`: its API key, if it is new."""

    shop: Shop
    key: str | None


async def install(tx: Tx, domain: str, granted: GrantedTokens, follows: InstallHooks) -> InstalledShop:
    """Store that a shop has the app, with its tokens. Its pools and its key stay as they were.

    A new shop is added. A shop without a key, because it is new or had uninstalled the app, gets one.
    """
    if lacks := missing_scopes(granted.scopes):
        raise MISSING_SCOPES(f"The shop has not granted: {', '.join(lacks)}.")
    shop, key = await shops.find_or_add(tx, domain)
    before = await sql.lock_install(tx, shop.id)
    if not await sql.store_install(tx, shop.id, granted.scopes):
        raise SERVICE_UNAVAILABLE("What the shop had here is being deleted, as the platform asked.", retry_after=60)
    await access.connect(tx, shop.id, granted)
    await inbox.retry_of_shop(tx, shop.id)
    if before is None or before.uninstalled_at:
        for hook in follows:
            await hook(tx, shop.id)
    return InstalledShop(shop, key)


async def connection_statuses(reader: Reader) -> dict[int, str]:
    """Return the status of the connection, in words, of each shop that has or had the app."""
    return {install.shop_id: _connection_status(install) for install in await sql.list_installs(reader)}


def _connection_status(install: Install) -> str:
    if install.uninstalled_at:
        return f"uninstalled at {install.uninstalled_at.isoformat(timespec='seconds')}"
    if install.broken:
        return f"must be connected again: {install.broken}"
    if install.subscription_errors:
        return f"connected, but the platform does not tell of {'; '.join(install.subscription_errors)}"
    return "connected"


async def find(reader: Reader, shop_id: int) -> Install | None:
    """Return the install of a shop; None: it never had the app."""
    return await sql.find_install(reader, shop_id)
