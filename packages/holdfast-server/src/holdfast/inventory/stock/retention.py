"""Deletes holds 90 days after they ended, and daily sums that no page shows. The ledger keeps their effects."""

from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.pool_page import DAYS

BATCH_SIZE = 5_000


async def forget_holds(tx: Tx) -> int:
    """Delete a batch of the holds, of all shops, that ended 90 days ago. Returns how many were deleted."""
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
        {"limit": BATCH_SIZE},
    )


async def forget_drawn(tx: Tx) -> int:
    """Delete a batch of the daily sums that are too old for any page. Returns how many rows were deleted."""
    return await tx.value(
        """
        with old as (
            select pool_id, day, source, variant_gid from drawn
             where day < (now() at time zone 'UTC')::date - 2 * %(days)s
             order by day limit %(limit)s for update skip locked),
        deleted as (
            delete from drawn using old
             where (drawn.pool_id, drawn.day, drawn.source, drawn.variant_gid)
                   = (old.pool_id, old.day, old.source, old.variant_gid)
         returning 1)
        select count(*) from deleted
        """,
        {"days": DAYS, "limit": BATCH_SIZE},
    )
