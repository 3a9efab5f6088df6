"""Deletes holds 90 days after they ended. The ledger keeps what they did."""

from holdfast.inventory.resources import Tx

PORTION = 5_000


async def forget_holds(tx: Tx) -> int:
    """Delete a portion of the holds that ended long ago, of all shops. Returns how many were deleted."""
    return await tx.value(
        """
        with ended as (
            select shop_id, id from holds where released_at < now() - interval '90 days'
             limit %(limit)s for update skip locked),
        lines as (
            delete from hold_lines using ended
             where hold_lines.shop_id = ended.shop_id and hold_lines.hold_id = ended.id),
        deleted as (
            delete from holds using ended where holds.shop_id = ended.shop_id and holds.id = ended.id returning 1)
        select count(*) from deleted
        """,
        {"limit": PORTION},
    )
