"""Reads the pools that a change concerns: those it names, and those that share a variant with them."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.ledger_rules import StockPool


class ShopPosition(NamedTuple):
    """The version of a shop, the number of entries in its ledger, the database's time, and the shop's stamp."""

    version: int
    entry_count: int
    now: datetime
    stamp: int | None


async def pools_around(
    reader: Reader, shop_id: int, pool_ids: Collection[int], variant_gids: Collection[str] = ()
) -> tuple[ShopPosition, list[StockPool]]:
    """Return the pools of the ids or drawn on by the variants, and every pool that shares a variant with these.

    The position of the shop comes from the same statement: callers need both, and each statement is a round trip.
    """
    rows = await reader.tuples(
        """
        -- `offset 0` keeps each look-up as it stands, down an index: as plain joins they read every member of the shop,
        -- and right after a load searches by arrays are slower.
        with requested_pool as materialized (
            select unnest(%(pool_ids)s::bigint[]) as id
             union
            select drawn.pool_id
              from unnest(%(variant_gids)s::text[]) as variant (gid)
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = variant.gid offset 0) as drawn),
        around as materialized (
            select id from requested_pool
             union
            select other.pool_id
              from requested_pool
             cross join lateral (select variant_gid from members
                                  where shop_id = %(shop_id)s and pool_id = requested_pool.id offset 0) as member
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = member.variant_gid offset 0) as other)
        select shop.version, shop.entries, clock_timestamp(), shop.stamp, pool.*,
               (select coalesce(json_object_agg(variant_gid, units_per_sale), '{}')
                  from members where shop_id = %(shop_id)s and pool_id = pool.id)
          from shared_inventories as shop
          left join (around
                     cross join lateral (
                           select id, name, unit, on_hand, held, buffer, low_stock_at, allow_negative, status::text,
                                  version, entries
                             from pools where shop_id = %(shop_id)s and id = around.id limit 1) as pool) on true
         where shop.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids), "variant_gids": list(variant_gids)},
    )
    [first, *_] = rows
    return ShopPosition(*first[:4]), [StockPool(*row[4:]) for row in rows if row[4] is not None]
