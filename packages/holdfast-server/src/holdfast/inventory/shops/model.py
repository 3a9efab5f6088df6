"""Shops, the one key of each, and how each follows the storefront platform (`get_sync_status`)."""

from datetime import datetime

from msgspec import Struct

from holdfast.inventory.resources import Tx

SCOPES = ("read_inventory", "write_inventory", "read_pools", "write_pools")
"""The scopes of a key: quantities (inventory) and configuration (pools)."""


class Shop(Struct, frozen=True):
    """A shop with its shared inventory."""

    id: int
    domain: str
    shared_inventory_id: int


class ShopKey(Struct, frozen=True):
    """A row of a shop's key."""

    id: int
    hash: bytes
    sealed: bytes
    scopes: list[str]
    inserted_at: datetime


CHANNEL = "sync_status"
"""The channel of the announcements; the payload is the id of the shop."""


async def announce(tx: Tx, shop_id: int) -> None:
    """Announce a change when this transaction commits."""
    await tx.notify(CHANNEL, str(shop_id))
