"""Deletes API keys 30 days after they were revoked."""

from holdfast.events.keys import sql
from holdfast.events.resources import Tx

PORTION = 5_000


async def forget_keys(tx: Tx) -> int:
    """Delete a portion of the keys that were revoked long ago. Returns how many were deleted."""
    return await sql.delete_revoked(tx, PORTION)
