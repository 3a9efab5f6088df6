"""Stores the levels of the platform, and explains their differences.

`available` is the last known quantity of a level. Our calls and orders explain `expected` of it. The rest stays on top
of the quantity of the pools (`target`) for a while: the platform may still tell of a sale.
"""

from collections.abc import Collection, Sequence

import msgspec

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync.model import GRACE_SECONDS, ObservedLevel, OrderLevelChange

CHANNEL = "levels"
"""The channel on which a shop is announced whose levels need a sync; the payload is its id."""


async def observe(
    tx: Tx, shop_id: int, observed: Sequence[ObservedLevel], *, fresh: bool = False, import_id: int | None = None
) -> None:
    """Store levels as the platform shows them, unless newer ones are stored. New levels are added.

    fresh        they were read just now: nothing newer is known
    import_id    the import that has found them; None: not an import
    """
    if not observed:
        return
    items = {level.item_gid for level in observed}
    await lock(tx, shop_id, items)
    await tx.run(
        """
        insert into levels (shop_id, item_gid, location_gid, gid, available, seen_at, import_id)
        select %(shop_id)s, item_gid, location_gid, gid, available, seen_at,
               coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
          from json_to_recordset(%(observed)s) as observation (
               item_gid text, location_gid text, gid text, available bigint, seen_at timestamptz)
         order by item_gid, location_gid
            on conflict (shop_id, item_gid, location_gid) do update
           set available = case when %(fresh)s or levels.seen_at is null or excluded.seen_at >= levels.seen_at
                                then excluded.available else levels.available end,
               suspect_at = case when levels.available = excluded.available then levels.suspect_at end,
               seen_at = greatest(levels.seen_at, excluded.seen_at), gid = excluded.gid,
               -- What is new here was not known when the level was found to have moved.
               read_again = levels.read_again and not %(fresh)s
                            and (excluded.available = levels.available or excluded.seen_at < levels.seen_at),
               import_id = greatest(levels.import_id, excluded.import_id)
        """,
        {
            "shop_id": shop_id,
            "observed": msgspec.json.encode(observed).decode(),
            "fresh": fresh,
            "import_id": import_id,
        },
    )
    await recheck(tx, shop_id, items)


async def explain(tx: Tx, shop_id: int, changes: Sequence[OrderLevelChange]) -> None:
    """Store that orders explain changes which the platform made itself.

    Call it in the transaction that counts the order. The webhook of the level comes before or after.
    """
    if not changes:
        return
    rows = await tx.tuples(
        "select distinct item_gid from catalog_variants where shop_id = %(shop_id)s and gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": [change.variant_gid for change in changes]},
    )
    items = {item for (item,) in rows}
    await lock(tx, shop_id, items)
    await tx.run(
        """
        with item_change as (
            select item_gid, sum(change)::bigint as change
              from json_to_recordset(%(changes)s) as moved (variant_gid text, change bigint, at timestamptz)
              join catalog_variants on shop_id = %(shop_id)s and gid = variant_gid
             where not exists (select from levels where levels.shop_id = %(shop_id)s
                                  and levels.item_gid = catalog_variants.item_gid and based_at >= moved.at)
             group by item_gid having sum(change) <> 0),
        chosen as (
            select item_change.change, choice.* from item_change cross join lateral (
                select item_gid, location_gid from levels
                 where shop_id = %(shop_id)s and levels.item_gid = item_change.item_gid and expected is not null
                 order by (available - expected) * sign(item_change.change) desc, target is null, location_gid
                 limit 1) as choice)
        update levels
           set expected = case when levels.location_gid = chosen.location_gid then expected + chosen.change
                               else expected end,
               suspect_at = case when levels.location_gid <> chosen.location_gid then suspect_at end,
               -- Nobody else sets a level that orders move: they do so also while nothing is left in the pool.
               brisk = 0
          from chosen
         where levels.shop_id = %(shop_id)s and levels.item_gid = chosen.item_gid
        """,
        {"shop_id": shop_id, "changes": msgspec.json.encode(changes).decode()},
    )
    await recheck(tx, shop_id, items)


async def lock(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """Lock all levels of items, in one order for all callers, before one of them is changed and all are rechecked.

    Otherwise the recheck would miss a change of another transaction at another location. A caller that changes levels
    by several statements locks all of them first, so no two callers wait for each other.
    """
    await tx.run(
        """
        select from levels
         where shop_id = %(shop_id)s and item_gid = any(%(items)s)
         order by item_gid, location_gid for no key update
        """,
        {"shop_id": shop_id, "items": [*item_gids]},
    )


async def recheck(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """Mark the differences that have cancelled out as explained, and give the others a grace.

    Orders do not name a location, so a difference at one can be explained by another. All levels of the items are
    locked already.
    """
    if not item_gids:
        return
    await tx.run(
        """
        with weighed as (
            select item_gid, sum(available - expected) = 0 and count(push_id) = 0 as even
              from levels where shop_id = %(shop_id)s and item_gid = any(%(items)s) and expected is not null
             group by item_gid)
        update levels
           set expected = case when even then available else expected end,
               suspect_at = case when not even and target is not null and available <> expected and parked is null
                                 then coalesce(suspect_at, clock_timestamp() + %(grace)s * interval '1 second') end
          from weighed
         where levels.shop_id = %(shop_id)s and levels.item_gid = weighed.item_gid and expected is not null
           and (even and (expected <> available or suspect_at is not null) or not even)
        """,
        {"shop_id": shop_id, "items": [*item_gids], "grace": GRACE_SECONDS},
    )


async def forget(tx: Tx, shop_id: int, pairs: Sequence[tuple[str, str]]) -> None:
    """Delete levels, by item and location, that the platform no longer has."""
    if not pairs:
        return
    await lock(tx, shop_id, {item for item, _ in pairs})
    await tx.run(
        """
        delete from levels using unnest(%(items)s::text[], %(locations)s::text[]) as gone (item_gid, location_gid)
         where shop_id = %(shop_id)s and levels.item_gid = gone.item_gid and levels.location_gid = gone.location_gid
        """,
        {"shop_id": shop_id, "items": [item for item, _ in pairs], "locations": [place for _, place in pairs]},
    )


async def request_sync_if_needed(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """Announce that the shop needs a sync after this transaction, if a level is not as wanted or explained."""
    if await tx.value(
        """
        insert into syncs (shop_id, due_at)
        select %(shop_id)s, due_at
          from (select min(case when expected is null or wanted <> available or read_again then clock_timestamp()
                                else suspect_at end) as due_at
                  from levels where shop_id = %(shop_id)s and item_gid = any(%(items)s)) as needs
         where due_at is not null
            on conflict (shop_id) do update set due_at = least(coalesce(syncs.due_at, 'infinity'), excluded.due_at)
        returning true
        """,
        {"shop_id": shop_id, "items": [*item_gids]},
    ):
        await tx.notify(CHANNEL, str(shop_id))


async def request_sync(tx: Tx, shop_id: int) -> None:
    """Announce that the levels of a shop need a sync after this transaction."""
    await tx.run(
        """
        insert into syncs (shop_id) values (%(shop_id)s)
            on conflict (shop_id) do update set due_at = least(coalesce(syncs.due_at, 'infinity'), clock_timestamp())
        """,
        {"shop_id": shop_id},
    )
    await tx.notify(CHANNEL, str(shop_id))
