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
        -- Arrays keep each of these a search of one index: as joins they read every member of the shop.
        with wanted as materialized (
            select unnest(%(pool_ids)s::bigint[]) as id
             union
            select pool_id from members where shop_id = %(shop_id)s and variant_gid = any(%(variant_gids)s::text[])),
        around as materialized (
            select id from wanted
             union
            select pool_id from members
             where shop_id = %(shop_id)s
               and variant_gid = any(array(
                   select variant_gid from members
                    where shop_id = %(shop_id)s and pool_id = any(array(select id from wanted)))))
        select shop.version, shop.entries, clock_timestamp(), pool.*
          from shared_inventories as shop
          left join (select id, name, unit, on_hand, held, buffer, low_stock_at, allow_negative, status::text, version,
                            entries, (select coalesce(json_object_agg(variant_gid, units_per_sale), '{}')
                                        from members where shop_id = %(shop_id)s and pool_id = pools.id)
                       from pools
                      where shop_id = %(shop_id)s and id = any(array(select id from around))) as pool on true
         where shop.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids), "variant_gids": list(variant_gids)},
    )
    [first, *_] = rows
    return Position(*first[:3]), [Pool(*row[3:]) for row in rows if row[3] is not None]
