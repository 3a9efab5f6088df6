"""The pools that a change concerns: those it names, and those that share a variant with them."""

from collections.abc import Collection

from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.ledger import Pool


async def pools_around(
    reader: Reader, shop_id: int, pool_ids: Collection[int], variant_gids: Collection[str] = ()
) -> list[Pool]:
    """Those pools, the pools those variants draw on, and every pool that shares a variant with one of them."""
    rows = await reader.tuples(
        """
        -- `offset 0` keeps each look-up as it stands, down an index: as plain joins they read every member of the shop.
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
        select pool.*, (select coalesce(json_object_agg(variant_gid, units_per_sale), '{}')
                          from members where shop_id = %(shop_id)s and pool_id = pool.id)
          from around
         cross join lateral (
               select id, name, unit, on_hand, held, buffer, low_stock_at, allow_negative, status::text, version,
                      entries
                 from pools where shop_id = %(shop_id)s and id = around.id limit 1) as pool
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids), "variant_gids": list(variant_gids)},
    )
    return [Pool(*row) for row in rows]
