"""Announces changes of what `get_sync_status` shows: how a shop follows the storefront platform."""

from holdfast.inventory.resources import Tx

CHANNEL = "sync_status"
"""The channel of the announcements; the payload is the id of the shop."""


async def announce(tx: Tx, shop_id: int) -> None:
    """Announce a change when this transaction commits."""
    await tx.notify(CHANNEL, str(shop_id))
