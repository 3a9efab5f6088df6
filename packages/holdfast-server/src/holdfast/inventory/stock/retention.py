"""The retention of holds and of daily sums that no page shows any more. The ledger keeps their effects."""

from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.pool_history import CHART_DAYS

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


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
        {"limit": DELETE_BATCH_SIZE},
    )


async def forget_daily_sums(tx: Tx) -> int:
    """Delete a batch of the daily sums that are too old for any page. Returns how many rows were deleted."""
    return await tx.value(
        """
        with old_sum as (
            select pool_id, day, source, variant_gid from drawn
             where day < (now() at time zone 'UTC')::date - 2 * %(days)s
             order by day limit %(limit)s for update skip locked),
        deleted as (
            delete from drawn using old_sum
             where (drawn.pool_id, drawn.day, drawn.source, drawn.variant_gid)
                   = (old_sum.pool_id, old_sum.day, old_sum.source, old_sum.variant_gid)
         returning 1)
        select count(*) from deleted
        """,
        {"days": CHART_DAYS, "limit": DELETE_BATCH_SIZE},
    )
