"""The plan of a shop: computes the target of each level again after pools, variants or locations have changed.

Only the newest values count: ten changes of a pool between two plans are one.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

from msgspec import Struct

from holdfast.inventory.resources import Tx
from holdfast.inventory.shopify.domains import CART_CHECK
from holdfast.inventory.sync import cart_check, levels
from holdfast.inventory.sync.model import PUSH_STREAK

CHANGED_ITEMS: LiteralString = """
    select item_gid from catalog_variants
      join (select variant_gid as gid from members join pools on pools.id = pool_id
             where pools.shop_id = %(shop_id)s and pools.version > %(version)s
             union
            select gid from variants where shop_id = %(shop_id)s and version > %(version)s) as variant using (gid)
     where shop_id = %(shop_id)s
     union
    select item_gid from levels join catalog_variants using (shop_id, item_gid)
     where shop_id = %(shop_id)s and expected is null
     union
    select item_gid from catalog_variants where shop_id = %(shop_id)s and %(everything)s
"""
"""The items whose targets are computed again: of variants that have changed since the planned `version`, or whose pools
have, and of levels that no plan has had yet (`expected` is null); or `everything`.
"""


class ShopVersions(NamedTuple):
    """What a plan depends on, as it is now or as it was when the plan was made.

    version    the version of the shop
    entries    the number of entries in its ledger
    changes    how often its catalog has changed
    """

    version: int
    entries: int
    changes: int


class _PlanRow(Struct):
    """What the plan of a shop depends on, now and when it was made.

    had_cart_numbers    whether the numbers for the cart check were computed
    has_cart_numbers    whether the shop allows the app to write them
    has_unplanned       whether there is a level that no plan has had yet (`expected` is null)
    """

    version: int
    entries: int
    changes: int
    planned_version: int
    planned_entries: int
    planned_changes: int
    had_cart_numbers: bool
    has_cart_numbers: bool
    has_unplanned: bool


class _PlannedLevel(NamedTuple):
    """A level that a plan has changed. `starts_tracking`: it is set from pools from now on."""

    item_gid: str
    location_gid: str
    starts_tracking: bool
    needs_recheck: bool


async def plan(tx: Tx, shop_id: int) -> None:
    """Compute the targets of the levels whose variants or pools have changed and of new levels, or of all levels if the
    catalog has changed.

    Computes the numbers for the cart check too, if the shop allows the app to write them.
    """
    [row] = await tx.rows(
        _PlanRow,
        """
        select version, entries, coalesce(changes, 0) as changes, planned_version, planned_entries, planned_changes,
               numbers as had_cart_numbers, coalesce(%(cart_check)s = any(scopes), false) as has_cart_numbers,
               exists (select from levels join catalog_variants using (shop_id, item_gid)
                        where levels.shop_id = %(shop_id)s and expected is null) as has_unplanned
          from syncs join shared_inventories as shared on shared.shop_id = syncs.shop_id
          left join catalogs on catalogs.shop_id = syncs.shop_id
          left join installs on installs.shop_id = syncs.shop_id
         where syncs.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "cart_check": CART_CHECK},
    )
    present_versions = ShopVersions(row.version, row.entries, row.changes)
    planned_versions = ShopVersions(row.planned_version, row.planned_entries, row.planned_changes)
    if present_versions == planned_versions and not row.has_unplanned and row.had_cart_numbers == row.has_cart_numbers:
        return
    if present_versions != planned_versions or row.has_unplanned:
        is_first_plan = planned_versions.version < 0
        everything = present_versions.changes != planned_versions.changes or is_first_plan
        items = await _find_changed_items(tx, shop_id, planned_versions, everything=everything)
        await levels.lock(tx, shop_id, items)
        await _compute_targets(tx, shop_id, planned_versions, items)
    if row.has_cart_numbers:
        await cart_check.compute(tx, shop_id, planned_versions.version, everything=not row.had_cart_numbers)
    elif row.had_cart_numbers:
        await cart_check.forget(tx, shop_id)
    await tx.run(
        """
        update syncs set planned_version = %(version)s, planned_entries = %(entries)s, planned_changes = %(changes)s,
                         numbers = %(numbers)s
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "numbers": row.has_cart_numbers, **present_versions._asdict()},
    )


async def _find_changed_items(tx: Tx, shop_id: int, planned_versions: ShopVersions, *, everything: bool) -> list[str]:
    rows = await tx.tuples(
        CHANGED_ITEMS,
        {"shop_id": shop_id, "version": planned_versions.version, "everything": everything},
    )
    return [item for (item,) in rows]


async def _compute_targets(tx: Tx, shop_id: int, planned_versions: ShopVersions, items: Sequence[str]) -> None:
    """Compute the targets of items again. All of their levels are locked."""
    # first_report     when the platform told of the first change of each pool since the last plan
    # item_stock       the quantity of each item, and whether its sale is paused
    # level_share      the new target of each level: the part of the quantity that its location gets, which begins at
    #                  `part_from` percent of it and ends at `part_to` percent
    # planned_level    the same, with `starts_tracking`: the level is set from pools from now on, so its earlier changes
    #                  need no explanation. If no level of an item was set before, all levels of the item start
    #
    # Columns of `levels`:
    # based_at         the time of the platform at which `expected` began
    # suspect_at       the time at which a difference that is still unexplained becomes an edit
    # caused_at        when the platform told of the first cause of a target that is not pushed yet
    changed_levels = await tx.rows(
        _PlannedLevel,
        f"""
        with first_report as (
            select pool_id, min(heard_at) as heard_at from ledger
             where shop_id = %(shop_id)s and id > %(entries)s and heard_at is not null group by pool_id),
        item_stock as (
            select item_gid, min(quantity) filter (where tracked) as quantity, min(heard_at) as heard_at,
                   coalesce(bool_or(pool_status.paused), false) as paused
              from catalog_variants
              left join availability on availability.shop_id = %(shop_id)s and variant_gid = gid
              left join lateral (
                   select min(heard_at) as heard_at
                     from members join first_report on first_report.pool_id = members.pool_id
                    where members.shop_id = %(shop_id)s and members.variant_gid = gid) as first_cause on true
              left join lateral (
                   select bool_or(status = 'paused') and not bool_or(status = 'archived') as paused
                     from members join pools on pools.id = pool_id
                    where quantity is null and members.shop_id = %(shop_id)s and members.variant_gid = gid)
                   as pool_status on true
             where catalog_variants.shop_id = %(shop_id)s and item_gid = any(%(items)s)
             group by item_gid),
        level_share as (
            select levels.item_gid, levels.location_gid, levels.seen_at, item_stock.heard_at, push_id,
                   levels.expected is null as is_new, levels.target is not null or levels.paused as was_set,
                   quantity * part_to / 100 - quantity * part_from / 100 as target,
                   item_stock.paused and location.gid is not null
                   and (levels.target is not null or levels.paused) as paused
              from item_stock
              join levels on levels.shop_id = %(shop_id)s and levels.item_gid = item_stock.item_gid
              left join settable_locations as location
                on location.shop_id = %(shop_id)s and location.gid = levels.location_gid),
        planned_level as (
            select *, push_id is null and (is_new or not was_set and target is not null
                                           or not bool_or(was_set) over item and bool_or(target is not null) over item)
                      as starts_tracking
              from level_share window item as (partition by item_gid))
        update levels
           set target = planned_level.target, paused = planned_level.paused,
               expected = case when starts_tracking then available else expected end,
               based_at = case when starts_tracking then planned_level.seen_at else based_at end,
               suspect_at = case when planned_level.target is not null and not starts_tracking then suspect_at end,
               caused_at = case when levels.target is not null and planned_level.target <> expected
                                then least(caused_at, planned_level.heard_at) end,
               {PUSH_STREAK} = 0
          from planned_level
         where levels.shop_id = %(shop_id)s and levels.item_gid = planned_level.item_gid
           and levels.location_gid = planned_level.location_gid
           and (levels.target is distinct from planned_level.target or levels.paused <> planned_level.paused
                or starts_tracking)
        returning levels.item_gid, levels.location_gid, starts_tracking,
                  starts_tracking or planned_level.paused or levels.available <> levels.expected as needs_recheck
        """,
        {
            "shop_id": shop_id,
            "entries": planned_versions.entries,
            "items": items,
        },
    )
    started_levels = [(level.item_gid, level.location_gid) for level in changed_levels if level.starts_tracking]
    if started_levels:
        await levels.release_changes(tx, shop_id, started_levels)
    await levels.recheck(tx, shop_id, {level.item_gid for level in changed_levels if level.needs_recheck})
