"""What is known of levels, and how their differences are explained.

A level is `available` as far as is known. Calls of ours and orders explain `expected` of it. What is not explained
stays on top of what the pools have (`target`) for a while: it may be a sale of which the platform has not told yet.
"""

from collections.abc import Collection, Sequence

import msgspec

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync.model import GRACE_SECONDS, Moved, Observed

CHANNEL = "levels"
"""The channel on which a shop is announced whose levels are to be attended to; the payload is its id."""


async def observe(
    tx: Tx, shop_id: int, observed: Sequence[Observed], *, fresh: bool = False, import_id: int | None = None
) -> None:
    """Store what the platform says of levels, unless something newer is known. New levels are added.

    fresh        the platform was asked just now: nothing newer is known
    import_id    the import that has found them; None: not an import
    """
    if not observed:
        return
    items = {each.item_gid for each in observed}
    await lock(tx, shop_id, items)
    await tx.run(
        """
        insert into levels (shop_id, item_gid, location_gid, gid, available, seen_at, import_id)
        select %(shop_id)s, item_gid, location_gid, gid, available, seen_at,
               coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
          from json_to_recordset(%(observed)s) as given (
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
    await weigh(tx, shop_id, items)


async def explain(tx: Tx, shop_id: int, changes: Sequence[Moved]) -> None:
    """Store that orders explain changes which the platform made itself.

    It is to be called in the transaction that counts the order. The platform tells of the level itself before or after.
    A change that a level had already when it became ours to set needs no explanation.
    """
    if not changes:
        return
    rows = await tx.tuples(
        "select distinct item_gid from catalog_variants where shop_id = %(shop_id)s and gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": [each.variant_gid for each in changes]},
    )
    items = {item for (item,) in rows}
    await lock(tx, shop_id, items)
    await tx.run(
        """
        with given as (
            select item_gid, sum(change)::bigint as change
              from json_to_recordset(%(changes)s) as moved (variant_gid text, change bigint, at timestamptz)
              join catalog_variants on shop_id = %(shop_id)s and gid = variant_gid
             where not exists (select from levels where levels.shop_id = %(shop_id)s
                                  and levels.item_gid = catalog_variants.item_gid and based_at >= moved.at)
             group by item_gid having sum(change) <> 0),
        chosen as (
            select given.change, choice.* from given cross join lateral (
                select item_gid, location_gid from levels
                 where shop_id = %(shop_id)s and levels.item_gid = given.item_gid and expected is not null
                 order by (available - expected) * sign(given.change) desc, target is null, location_gid
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
    await weigh(tx, shop_id, items)


async def lock(tx: Tx, shop_id: int, item_gids: Collection[str], *, late: bool = False) -> None:
    """Lock all levels of items, in one order for everybody: before one of them is changed, and all are weighed.

    Otherwise what somebody else is just changing at another location would be missing in what is weighed. Whoever
    changes levels by several statements locks all of them first: so nobody waits for each other.

    late    lock also the items with differences that were not explained in time
    """
    await tx.run(
        """
        select from levels
         where shop_id = %(shop_id)s
           and item_gid = any(array(
               select unnest(%(items)s::text[])
                union
               select item_gid from levels
                where %(late)s and shop_id = %(shop_id)s and suspect_at <= (select clock_timestamp())))
         order by item_gid, location_gid for no key update
        """,
        {"shop_id": shop_id, "items": [*item_gids], "late": late},
    )


async def weigh(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """See which differences have cancelled out, and which are to be looked at when the grace is over.

    What is not explained at one location can be explained at another, because orders do not say where. All levels of
    the items are locked already.
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
    """Forget levels, by item and location, that the platform does not have any more."""
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


async def call_if_needed(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """Have somebody attend to those levels after this transaction, if any is not as wanted or explained."""
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


async def call(tx: Tx, shop_id: int) -> None:
    """Have somebody attend to the levels of a shop after this transaction."""
    await tx.run(
        """
        insert into syncs (shop_id) values (%(shop_id)s)
            on conflict (shop_id) do update set due_at = least(coalesce(syncs.due_at, 'infinity'), clock_timestamp())
        """,
        {"shop_id": shop_id},
    )
    await tx.notify(CHANNEL, str(shop_id))
