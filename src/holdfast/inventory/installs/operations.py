"""Installing the app at a shop: what the platform has granted is stored, and the shop gets its key."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from holdfast.inventory.installs import access, sql
from holdfast.inventory.installs.model import Install
from holdfast.inventory.problems import MISSING_SCOPES
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.scopes import missing
from holdfast.inventory.shopify.token_endpoint import Granted
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.webhooks import inbox
from holdfast.kit.problems import SERVICE_UNAVAILABLE

Follows = Sequence[Callable[[Tx, int], Awaitable[None]]]
"""What follows an install, in its transaction: each is given the id of the shop, and enqueues its own work."""


class Installed(Struct, frozen=True):
    """A shop that has the app. `key`: its API key, if it was made just now; it is shown once."""

    shop: Shop
    key: str | None


async def install(tx: Tx, domain: str, granted: Granted, follows: Follows) -> Installed:
    """Store that a shop has the app, with its tokens. Its pools and its key stay as they were.

    A shop that is not known yet is made; one that has no key, since it is new or had uninstalled the app, gets one.
    Raises `missing_scopes`, and `service_unavailable` while everything of the shop is being deleted.
    """
    if lacks := missing(granted.scopes):
        raise MISSING_SCOPES(f"The shop has not granted: {', '.join(lacks)}.")
    shop, key = await shops.find_or_add(tx, domain)
    before = await sql.lock_install(tx, shop.id)
    if not await sql.store_install(tx, shop.id, granted.scopes):
        raise SERVICE_UNAVAILABLE("What the shop had here is being deleted, as the platform asked.", retry_after=60)
    await access.connect(tx, shop.id, granted)
    await inbox.retry_of_shop(tx, shop.id)
    if before is None or before.uninstalled_at:
        for each in follows:
            await each(tx, shop.id)
    return Installed(shop, key)


async def states(reader: Reader) -> dict[int, str]:
    """By the ids of shops that have or had the app, how they are connected, in words."""
    return {each.shop_id: _state(each) for each in await sql.list_installs(reader)}


def _state(install: Install) -> str:
    if install.uninstalled_at:
        return f"uninstalled at {install.uninstalled_at.isoformat(timespec='seconds')}"
    return f"must be connected again: {install.broken}" if install.broken else "connected"


async def find(reader: Reader, shop_id: int) -> Install | None:
    """Whether and how a shop has the app; None: it never had."""
    return await sql.find_install(reader, shop_id)
