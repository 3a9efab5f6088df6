"""Computes the target of each level again after pools, variants or locations have changed.

Only the newest values count: ten changes of a pool between two plans are one.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

from holdfast.inventory.resources import Tx
from holdfast.inventory.shopify.scopes import CART_CHECK
from holdfast.inventory.sync import cart_check_numbers, levels
from holdfast.inventory.sync.model import GRACE_SECONDS

CONCERNED: LiteralString = """
    select item_gid from catalog_variants
      join (select variant_gid as gid from members join pools on pools.id = pool_id
             where pools.shop_id = %(shop_id)s and pools.version > %(version)s
             union
            select gid from variants where shop_id = %(shop_id)s and version > %(version)s) as changed using (gid)
     where shop_id = %(shop_id)s
     union
    select item_gid from levels join catalog_variants using (shop_id, item_gid)
     where shop_id = %(shop_id)s and expected is null
     union
    select item_gid from catalog_variants where shop_id = %(shop_id)s and %(everything)s
"""
"""The items whose targets are computed again: of variants whose pools have changed since the planned `version`, and of
levels without a target yet; or `everything`.
"""


class PlanPosition(NamedTuple):
    """The version of a shop, the entries in its ledger, and the changes of its catalog."""

    version: int
    entries: int
    changes: int


async def plan(tx: Tx, shop_id: int) -> None:
    """Compute the targets of the levels whose pools have changed; of all if the catalog has.

    Computes the numbers for the cart check too, if the shop has granted that they are written.
    """
    [row] = await tx.tuples(
        """
        select version, entries, coalesce(changes, 0), planned_version, planned_entries, planned_changes, numbers,
               coalesce(%(cart_check)s = any(scopes), false),
               exists (select from levels join catalog_variants using (shop_id, item_gid)
                        where levels.shop_id = %(shop_id)s and expected is null)
          from syncs join shared_inventories as shared on shared.shop_id = syncs.shop_id
          left join catalogs on catalogs.shop_id = syncs.shop_id
          left join installs on installs.shop_id = syncs.shop_id
         where syncs.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "cart_check": CART_CHECK},
    )
    present, planned = PlanPosition(*row[:3]), PlanPosition(*row[3:6])
    had_numbers, has_numbers, unplanned = row[6:]
    if present == planned and not unplanned and had_numbers == has_numbers:
        return
    if present != planned or unplanned:
        everything = present.changes != planned.changes or planned.version < 0
        items = await _concerned(tx, shop_id, planned, everything=everything)
        await levels.lock(tx, shop_id, items)
        await _compute(tx, shop_id, planned, items)
    if has_numbers:
        await cart_check_numbers.compute(tx, shop_id, planned.version, everything=not had_numbers)
    elif had_numbers:
        await cart_check_numbers.forget(tx, shop_id)
    await tx.run(
        """
        update syncs set planned_version = %(version)s, planned_entries = %(entries)s, planned_changes = %(changes)s,
                         numbers = %(numbers)s
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "numbers": has_numbers, **present._asdict()},
    )


async def _concerned(tx: Tx, shop_id: int, planned: PlanPosition, *, everything: bool) -> list[str]:
    rows = await tx.tuples(
        CONCERNED,
        {"shop_id": shop_id, "version": planned.version, "everything": everything},
    )
    return [item for (item,) in rows]


async def _compute(tx: Tx, shop_id: int, planned: PlanPosition, items: Sequence[str]) -> None:
    """Compute the targets of items again. All of their levels are locked."""
    await tx.run(
        """
        with heard as (
            select pool_id, min(heard_at) as heard_at from ledger
             where shop_id = %(shop_id)s and id > %(entries)s and heard_at is not null group by pool_id),
        item_stock as (
            select item_gid, min(quantity) filter (where tracked) as quantity, min(heard_at) as heard_at,
                   coalesce(bool_or(stopped.paused), false) as paused
              from catalog_variants
              left join availability on availability.shop_id = %(shop_id)s and variant_gid = gid
              left join lateral (
                   select min(heard_at) as heard_at from members join heard on heard.pool_id = members.pool_id
                    where members.shop_id = %(shop_id)s and members.variant_gid = gid) as causes on true
              left join lateral (
                   select bool_or(status = 'paused') and not bool_or(status = 'archived') as paused
                     from members join pools on pools.id = pool_id
                    where quantity is null and members.shop_id = %(shop_id)s and members.variant_gid = gid) as stopped
                on true
             where catalog_variants.shop_id = %(shop_id)s and item_gid = any(%(items)s)
             group by item_gid),
        spread as (
            select levels.item_gid, levels.location_gid, levels.seen_at, item_stock.heard_at,
                   push_id is null and (levels.target is null and not levels.paused or expected is null) as begins,
                   quantity * part_to / 100 - quantity * part_from / 100 as target,
                   item_stock.paused and place.gid is not null
                   and (levels.target is not null or levels.paused) as paused
              from item_stock
              join levels on levels.shop_id = %(shop_id)s and levels.item_gid = item_stock.item_gid
              left join settable_locations as place
                on place.shop_id = %(shop_id)s and place.gid = levels.location_gid),
        ours as (
            select item_gid, min(location_gid) as location_gid, max(seen_at) as seen_at
              from spread where begins and target is not null group by item_gid),
        -- Orders that are counted, and that came after what is known of the level.
        unseen as (
            select item_gid, ours.location_gid, sum(taken)::bigint as unseen_units
              from orders
              join order_lines on order_lines.shop_id = %(shop_id)s and order_id = orders.id
              join catalog_variants on catalog_variants.shop_id = %(shop_id)s and gid = variant_gid
              join ours using (item_gid)
             where orders.shop_id = %(shop_id)s and placed_at > clock_timestamp() - interval '1 hour'
               and placed_at > ours.seen_at and exists (select from ours)
             group by item_gid, ours.location_gid)
        update levels
           set target = spread.target, paused = spread.paused,
               -- What happened before a level became ours to set needs no explanation.
               expected = case when begins then available - coalesce(unseen_units, 0) else expected end,
               based_at = case when begins then spread.seen_at else based_at end,
               suspect_at = case when spread.target is not null and begins and unseen_units > 0
                                 then clock_timestamp() + %(grace)s * interval '1 second'
                                 -- What nobody has explained while a pool was paused may be an edit.
                                 when spread.target is not null and levels.paused and available <> expected
                                      and parked is null
                                 then clock_timestamp() + %(grace)s * interval '1 second'
                                 when spread.target is not null then suspect_at end,
               caused_at = case when levels.target is not null and spread.target <> expected
                                then least(caused_at, spread.heard_at) end,
               brisk = 0
          from spread left join unseen using (item_gid, location_gid)
         where levels.shop_id = %(shop_id)s and levels.item_gid = spread.item_gid
           and levels.location_gid = spread.location_gid
           and (levels.target is distinct from spread.target or levels.paused <> spread.paused or expected is null)
        """,
        {
            "shop_id": shop_id,
            "entries": planned.entries,
            "items": items,
            "grace": GRACE_SECONDS,
        },
    )
