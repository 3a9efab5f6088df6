"""The pace at which the stock of pools is used, and for how long it lasts: parts of statements on `pools`."""

from typing import LiteralString

PACE_AND_DAYS_OF_COVER: LiteralString = """
    round(units_used / 28.0, 2)::float as taken_per_day,
    round(available * 28.0 / nullif(units_used, 0), 1)::float as days_of_cover
"""
"""What is taken of a pool on a day, and for how many days its stock lasts at that pace; null while none is taken."""

STOCK_AND_RECENT_USE: LiteralString = """
    cross join lateral (select greatest(0, on_hand - held - buffer) as available) as stock
    cross join lateral (
          select greatest(0, -coalesce(sum(delta), 0)) as units_used from ledger as entry
           where entry.shop_id = pools.shop_id and pool_id = pools.id and created_at > now() - interval '28 days'
             and (delta < 0 and kind in ('sale', 'adjust') or kind = 'cancel'
                  or kind = 'revert' and exists (
                     select from ledger as reverted
                      where reverted.shop_id = pools.shop_id and reverted.id = entry.reverts_id
                        and reverted.delta < 0 and reverted.kind in ('sale', 'adjust')
                        and reverted.created_at > now() - interval '28 days'))) as recent_use
"""
"""What can be sold of the pool of each row, and what was taken of it in 28 days.

What was undone of these sales and adjustments, and what cancelled orders gave back in these days, is subtracted.
"""
