"""The pools that a change concerns: those it names, and those that share a variant with them."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.ledger import Pool


class Position(NamedTuple):
    """The version of a shop, the number of entries in its ledger, and the database's time."""

    version: int
    entries: int
    now: datetime


async def pools_around(
    reader: Reader, shop_id: int, pool_ids: Collection[int], variant_gids: Collection[str] = ()
) -> tuple[Position, list[Pool]]:
    """Those pools, the pools those variants draw on, and every pool that shares a variant with one of them.

    With the position of the shop, since whoever asks for pools needs it too, and each statement is a round trip.
    """
    rows = await reader.tuples(
        """
        -- `offset 0` keeps each look-up as it stands, down an index: as plain joins they read every member of the shop,
        -- and right after a load searches by arrays are slower.
        with wanted as materialized (
            select unnest(%(pool_ids)s::bigint[]) as id
             union
            select drawn.pool_id
              from unnest(%(variant_gids)s::text[]) as asked (gid)
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = asked.gid offset 0) as drawn),
        around as materialized (
            select id from wanted
             union
            select other.pool_id
              from wanted
             cross join lateral (select variant_gid from members
                                  where shop_id = %(shop_id)s and pool_id = wanted.id offset 0) as own
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = own.variant_gid offset 0) as other)
        select shop.version, shop.entries, clock_timestamp(), pool.*,
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
    return Position(*first[:3]), [Pool(*row[3:]) for row in rows if row[3] is not None]
