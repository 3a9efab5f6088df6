"""Deletes rejections 30 days after the event, so that clients have had time to read them."""

from holdfast.events.registrations import sql
from holdfast.events.resources import Tx


async def forget_rejections(tx: Tx) -> int:
    """Delete the rejections that are no longer needed. Returns how many were deleted."""
    return await sql.delete_old_rejections(tx)
