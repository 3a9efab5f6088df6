"""Deletes API keys 30 days after they were revoked."""

from holdfast.events.keys import sql
from holdfast.events.resources import Tx

BATCH_SIZE = 5_000


async def forget_keys(tx: Tx) -> int:
    """Delete a batch of the keys that were revoked long ago. Returns the number deleted."""
    return await sql.delete_revoked(tx, BATCH_SIZE)
