"""How long a rejection is remembered: 30 days beyond the event, so that whoever asked has been told."""

from holdfast.events.registrations import sql
from holdfast.events.settings import Tx


async def forget_rejections(tx: Tx) -> int:
    """Delete the rejections that nobody needs any more; how many were deleted."""
    return await sql.delete_old_rejections(tx)
