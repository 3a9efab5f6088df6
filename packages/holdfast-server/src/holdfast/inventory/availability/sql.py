"""Statements on effective quantities.

The view `availability` has the rule of `Stock.available` in SQL; `test_availability_in_sql.py` compares the two.
"""

from collections.abc import Collection
from typing import LiteralString

from holdfast.inventory.availability.model import AvailabilityDelta, ListLowStock, LowStock
from holdfast.inventory.availability.stock_pace import PACE_AND_DAYS_OF_COVER, STOCK_AND_RECENT_USE
from holdfast.inventory.resources import Reader


async def read_all(reader: Reader, shop_id: int) -> AvailabilityDelta | None:
    """All variants and pools of a shop, in one snapshot; None if the shop is gone."""
    return await _delta(
        reader,
        """
        select (select version from shared_inventories where shop_id = %(shop_id)s),
               (select coalesce(json_object_agg(variant_gid, quantity), '{}')
                  from availability where shop_id = %(shop_id)s),
               (select coalesce(json_object_agg(id, status || ' ' || name), '{}')
                  from pools where shop_id = %(shop_id)s)
        """,
        shop_id=shop_id,
    )


async def changes_since(reader: Reader, shop_id: int, version: int) -> AvailabilityDelta | None:
    """What changed of a shop after a version, in one snapshot; None if the shop is gone."""
    return await _delta(
        reader,
        """
        with changed_pool as (
            select id, name, status from pools where shop_id = %(shop_id)s and version > %(version)s),
        affected_variant as (
            select variant_gid from members join changed_pool on changed_pool.id = pool_id
             union
            select gid from variants where shop_id = %(shop_id)s and version > %(version)s)
        select (select version from shared_inventories where shop_id = %(shop_id)s),
               (select coalesce(json_object_agg(affected_variant.variant_gid, (
                            select quantity from availability
                             where availability.shop_id = %(shop_id)s
                               and availability.variant_gid = affected_variant.variant_gid)), '{}')
                  from affected_variant),
               (select coalesce(json_object_agg(id, status || ' ' || name), '{}') from changed_pool)
        """,
        shop_id=shop_id,
        version=version,
    )


async def current_versions(reader: Reader, shop_ids: Collection[int]) -> list[tuple[int, int, str]]:
    """The id of each shop, its version, and a text that changes with its sync status.

    Shops that have uninstalled the app are left out.
    """
    return await reader.tuples(
        """
        select shop_id, version, concat(catalogs.xmin, ' ', syncs.xmin, ' ', replays.xmin) from shared_inventories
          left join catalogs using (shop_id)
          left join replays using (shop_id)
          left join syncs using (shop_id)
          left join installs using (shop_id)
         where shop_id = any(%(shop_ids)s) and uninstalled_at is null
        """,
        {"shop_ids": list(shop_ids)},
    )


async def _delta(reader: Reader, statement: LiteralString, **params: int) -> AvailabilityDelta | None:
    [(version, variants, pools)] = await reader.tuples(statement, params)
    return (
        None if version is None else AvailabilityDelta(version, variants, {int(id): text for id, text in pools.items()})
    )


async def list_low_stock(reader: Reader, shop_id: int, command: ListLowStock) -> list[LowStock]:
    """The pools that run low, by id, one more than a page."""
    is_low: LiteralString = "is_low" if command.threshold is None else "available <= %(threshold)s"
    if command.days_of_cover is not None:
        is_low = f"({is_low} or units_used > 0 and available * 28.0 <= units_used * %(days_of_cover)s)"
    return await reader.rows(
        LowStock,
        f"""
        select id as pool_id, name, unit, available, low_stock_at, {PACE_AND_DAYS_OF_COVER}
          from pools
          {STOCK_AND_RECENT_USE}
         where shop_id = %(shop_id)s and status = 'active' and id > %(after)s and {is_low}
         order by id limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "after": command.after(int) or 0,
            "threshold": command.threshold,
            "days_of_cover": command.days_of_cover,
            "limit": command.limit + 1,
        },
    )


async def shared_inventory_of(reader: Reader, shop_id: int) -> int:
    return await reader.value("select id from shared_inventories where shop_id = %(shop_id)s", {"shop_id": shop_id})
