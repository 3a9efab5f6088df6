"""The announcement that something changed of how a shop follows the storefront platform: `get_sync_status` shows it."""

from holdfast.inventory.resources import Tx

CHANNEL = "sync_status"
"""The channel on which it is announced; the payload is the id of the shop."""


async def announce(tx: Tx, shop_id: int) -> None:
    """Announce it when this transaction is committed."""
    await tx.notify(CHANNEL, str(shop_id))
