"""Stores the levels of the platform, and explains their differences.

`available` is the last known quantity of a level. Our calls and orders explain `expected` of it. The rest stays on top
of the quantity of the pools (`target`) for a while: the platform may still tell of a sale.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync.explanation import ExplainedLevel, PendingChange
from holdfast.inventory.sync.explanation import explain as explain_levels
from holdfast.inventory.sync.model import (
    GRACE_SECONDS,
    ORDER_LAG_SECONDS,
    PUSH_STREAK,
    ObservedLevel,
    OrderLevelChange,
)

LEVELS_CHANNEL = "levels"
"""The channel on which a shop is announced whose levels need a sync; the payload is its id."""


async def observe(
    tx: Tx,
    shop_id: int,
    observed: Sequence[ObservedLevel],
    *,
    is_just_read: bool = False,
    import_id: int | None = None,
    is_complete: bool = False,
) -> None:
    """Store levels as the platform shows them, unless newer ones are stored. New levels are added.

    is_just_read   they were read just now: nothing newer is known
    import_id      the import that has found them; None: not an import
    is_complete    all levels of the items were read just now
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
           set available = case when %(is_just_read)s or levels.seen_at is null or excluded.seen_at >= levels.seen_at
                                then excluded.available else levels.available end,
               -- A late webhook changes nothing, and the grace goes on.
               suspect_at = case when levels.available = excluded.available
                                   or not (%(is_just_read)s or levels.seen_at is null
                                           or excluded.seen_at >= levels.seen_at)
                                 then levels.suspect_at end,
               seen_at = greatest(levels.seen_at, excluded.seen_at), gid = excluded.gid,
               -- What is new here was not known when the level was found to have moved.
               read_again = levels.read_again and not %(is_just_read)s
                            and (excluded.available = levels.available or excluded.seen_at < levels.seen_at),
               import_id = greatest(levels.import_id, excluded.import_id)
        """,
        {
            "shop_id": shop_id,
            "observed": msgspec.json.encode(observed).decode(),
            "is_just_read": is_just_read,
            "import_id": import_id,
        },
    )
    await recheck(tx, shop_id, items, is_complete=is_complete)


async def explain(tx: Tx, shop_id: int, changes: Sequence[OrderLevelChange]) -> None:
    """Store that orders explain changes which the platform made itself.

    Call it in the transaction that counts the order. The webhook of the level comes before or after.
    """
    if not changes:
        return
    await tx.run(
        """
        insert into order_level_changes (shop_id, variant_gid, amount, not_before)
        select %(shop_id)s, variant_gid, change, not_before
          from json_to_recordset(%(changes)s) as order_change (variant_gid text, change bigint, not_before timestamptz)
        """,
        {"shop_id": shop_id, "changes": msgspec.json.encode(changes).decode()},
    )
    rows = await tx.tuples(
        "select distinct item_gid from catalog_variants where shop_id = %(shop_id)s and gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": [change.variant_gid for change in changes]},
    )
    items = {item for (item,) in rows}
    await lock(tx, shop_id, items)
    await tx.run(
        f"""
        -- No other app sets a level that orders move: they do so also while nothing is left in the pool.
        update levels set {PUSH_STREAK} = 0
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and {PUSH_STREAK} <> 0 and expected is not null
        """,
        {"shop_id": shop_id, "items": [*items]},
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


async def recheck(tx: Tx, shop_id: int, item_gids: Collection[str], *, is_complete: bool = False) -> None:
    """Explain the levels of items by orders again, and give the differences that are left a grace.

    All levels of the items are locked already.

    is_complete    all levels of the items were read just now
    """
    if not item_gids:
        return
    rows_by_item = await _find_unsettled(tx, shop_id, item_gids)
    changes = await _find_changes(tx, shop_id, item_gids, ORDER_LAG_SECONDS if is_complete else 0)
    settled: list[_SettledLevel] = []
    located: list[tuple[int, str | None]] = []
    certain: list[int] = []
    for item_gid, rows in rows_by_item.items():
        item_changes = changes.get(item_gid, [])
        if not any(row.is_set for row in rows):
            continue
        if any(row.is_pushed for row in rows):
            expected, locations = _attribute_for_now(rows, item_changes)
            is_settled = is_moved = False
            is_open = bool(locations)
        else:
            explanation = explain_levels([row.level for row in rows], item_changes, is_complete=is_complete)
            expected, locations = explanation.expected, explanation.locations
            is_settled, is_moved = explanation.is_settled, explanation.is_moved
            certain += explanation.certain
            is_open = len(locations) > len(explanation.certain)
        located += [
            (change.id, locations[change.id]) for change in item_changes if locations[change.id] != change.location_gid
        ]
        is_judged = any(row.has_target for row in rows)
        for row in rows:
            location_gid, expected_quantity = row.location_gid, expected[row.location_gid]
            is_suspect = is_judged and (is_open or (not is_settled and expected_quantity != row.available))
            settled.append(_SettledLevel(item_gid, location_gid, expected_quantity, is_suspect, is_moved))
    await _store_explained(tx, shop_id, settled)
    await _store_locations(tx, located, certain)


class _SettledLevel(Struct, frozen=True):
    """What explains a level. `is_suspect`: its difference, or the place of a change of its item, is to be judged."""

    item_gid: str
    location_gid: str
    expected: int
    is_suspect: bool
    begins_again: bool


class _LevelRow(NamedTuple):
    """A level. `has_target`: it is set from pools, and they are not paused. `is_pushed`: a call changes it now."""

    item_gid: str
    location_gid: str
    available: int
    expected: int
    is_set: bool
    has_target: bool
    is_pushed: bool

    @property
    def level(self) -> ExplainedLevel:
        return ExplainedLevel(self.location_gid, self.available, self.expected, self.is_set)


async def _find_unsettled(tx: Tx, shop_id: int, item_gids: Collection[str]) -> dict[str, list[_LevelRow]]:
    """All levels, by item, of the items that have a difference, a suspect level or a change without a place."""
    rows = await tx.rows(
        _LevelRow,
        """
        select levels.item_gid, location_gid, available, expected, target is not null or paused as is_set,
               target is not null as has_target, push_id is not null as is_pushed
          from levels
          join (select item_gid from levels
                 where shop_id = %(shop_id)s and item_gid = any(%(items)s) and expected is not null
                 group by item_gid having bool_or(available <> expected or suspect_at is not null)
                 union
                select item_gid from catalog_variants
                  join order_level_changes as change on change.shop_id = %(shop_id)s and change.variant_gid = gid
                 where catalog_variants.shop_id = %(shop_id)s and item_gid = any(%(items)s)) as unsettled
            on unsettled.item_gid = levels.item_gid
         where shop_id = %(shop_id)s and expected is not null
         order by levels.item_gid, location_gid
        """,
        {"shop_id": shop_id, "items": [*item_gids]},
    )
    rows_by_item: dict[str, list[_LevelRow]] = {}
    for row in rows:
        rows_by_item.setdefault(row.item_gid, []).append(row)
    return rows_by_item


async def _find_changes(
    tx: Tx, shop_id: int, item_gids: Collection[str], order_lag_seconds: int
) -> dict[str, list[PendingChange]]:
    """The changes by orders whose place is not certain, by item."""
    rows = await tx.tuples(
        """
        select catalog.item_gid, change.id, change.location_gid, change.amount,
               change.not_before <= greatest(began.at, ended_at) or change.received_at <= ended_at
          from catalog_variants as catalog
          join order_level_changes as change on change.shop_id = %(shop_id)s and change.variant_gid = catalog.gid
         cross join lateral (
               select max(case when expected is not null then based_at
                               else coalesce(seen_at + %(lag)s * interval '1 second', 'infinity') end) as at
                 from levels where levels.shop_id = %(shop_id)s and levels.item_gid = catalog.item_gid) as began
          left join ended_levels on ended_levels.shop_id = %(shop_id)s and ended_levels.item_gid = catalog.item_gid
         where catalog.shop_id = %(shop_id)s and catalog.item_gid = any(%(items)s) order by change.id
        """,
        {"shop_id": shop_id, "items": [*item_gids], "lag": order_lag_seconds},
    )
    changes: dict[str, list[PendingChange]] = {}
    for item_gid, id, location_gid, amount, may_be_included in rows:
        changes.setdefault(item_gid, []).append(PendingChange(id, location_gid, amount, bool(may_be_included)))
    return changes


def _attribute_for_now(
    rows: Sequence[_LevelRow], changes: Sequence[PendingChange]
) -> tuple[dict[str, int], dict[int, str | None]]:
    """Attribute new changes to the first level set from pools: it is not known whether a call has changed it."""
    expected = {row.location_gid: row.expected for row in rows}
    locations = {change.id: change.location_gid for change in changes}
    first = min(row.location_gid for row in rows if row.is_set)
    for change in changes:
        if change.location_gid is None and not change.may_be_included:
            expected[first] += change.amount
            locations[change.id] = first
    return expected, locations


async def _store_explained(tx: Tx, shop_id: int, settled: Sequence[_SettledLevel]) -> None:
    if not settled:
        return
    await tx.run(
        """
        with settled as (
            select * from json_to_recordset(%(settled)s) as settled (
                item_gid text, location_gid text, expected bigint, is_suspect boolean, begins_again boolean))
        update levels
           set expected = settled.expected,
               suspect_at = case when settled.is_suspect and parked is null
                                 then coalesce(suspect_at, clock_timestamp() + %(grace)s * interval '1 second') end,
               based_at = case when begins_again then greatest(based_at, seen_at) else based_at end
          from settled
         where levels.shop_id = %(shop_id)s and levels.item_gid = settled.item_gid
           and levels.location_gid = settled.location_gid
           and (levels.expected <> settled.expected or begins_again
                or (suspect_at is not null) <> (settled.is_suspect and parked is null))
        """,
        {"shop_id": shop_id, "settled": msgspec.json.encode(settled).decode(), "grace": GRACE_SECONDS},
    )


async def _store_locations(tx: Tx, located: Sequence[tuple[int, str | None]], certain: Sequence[int]) -> None:
    if certain:
        await tx.run("delete from order_level_changes where id = any(%(certain)s)", {"certain": [*certain]})
    if located:
        await tx.run(
            """
            update order_level_changes as change set location_gid = located.location_gid
              from unnest(%(ids)s::bigint[], %(locations)s::text[]) as located (id, location_gid)
             where change.id = located.id
            """,
            {"ids": [id for id, _ in located], "locations": [location for _, location in located]},
        )


async def release_changes(tx: Tx, shop_id: int, pairs: Sequence[tuple[str, str]]) -> None:
    """Let the changes by orders have no place that are at these levels, by item and location.

    Call it before what is expected of the levels begins again, and `recheck` them after that.
    """
    await tx.run(
        """
        update order_level_changes as change set location_gid = null
          from unnest(%(items)s::text[], %(locations)s::text[]) as level (item_gid, location_gid)
          join catalog_variants as catalog on catalog.shop_id = %(shop_id)s and catalog.item_gid = level.item_gid
         where change.shop_id = %(shop_id)s and change.variant_gid = catalog.gid
           and change.location_gid = level.location_gid
        """,
        {"shop_id": shop_id, "items": [item for item, _ in pairs], "locations": [location for _, location in pairs]},
    )


async def end_changes(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    """Delete the changes by orders of items whose differences were judged."""
    await tx.run(
        """
        delete from order_level_changes as change using catalog_variants as catalog
         where change.shop_id = %(shop_id)s and catalog.shop_id = %(shop_id)s and catalog.gid = change.variant_gid
           and catalog.item_gid = any(%(items)s)
        """,
        {"shop_id": shop_id, "items": [*item_gids]},
    )


async def forget(tx: Tx, shop_id: int, pairs: Sequence[tuple[str, str]]) -> None:
    """Delete levels, by item and location, that the platform no longer has."""
    if not pairs:
        return
    items = {item for item, _ in pairs}
    await lock(tx, shop_id, items)
    await release_changes(tx, shop_id, pairs)
    await tx.run(
        """
        with ended as (
            delete from levels using unnest(%(items)s::text[], %(locations)s::text[]) as ended (item_gid, location_gid)
             where shop_id = %(shop_id)s and levels.item_gid = ended.item_gid
               and levels.location_gid = ended.location_gid
            returning levels.item_gid)
        insert into ended_levels (shop_id, item_gid) select distinct %(shop_id)s, item_gid from ended
            on conflict (shop_id, item_gid) do update set ended_at = excluded.ended_at
        """,
        {"shop_id": shop_id, "items": [item for item, _ in pairs], "locations": [location for _, location in pairs]},
    )
    await recheck(tx, shop_id, items)


async def store_reading(
    tx: Tx,
    shop_id: int,
    known_levels: Sequence[tuple[str, str]],
    observed: Sequence[ObservedLevel],
    *,
    is_complete: bool,
) -> None:
    """Store levels that were just read, and delete those of the known ones that the platform no longer has.

    is_complete    all levels of the items were read
    """
    observed_levels = {(level.item_gid, level.location_gid) for level in observed}
    await forget(tx, shop_id, [level for level in known_levels if level not in observed_levels])
    await observe(tx, shop_id, observed, is_just_read=True, is_complete=is_complete)


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
        await tx.notify(LEVELS_CHANNEL, str(shop_id))


async def request_sync(tx: Tx, shop_id: int) -> None:
    """Announce that the levels of a shop need a sync after this transaction."""
    await tx.run(
        """
        insert into syncs (shop_id) values (%(shop_id)s)
            on conflict (shop_id) do update set due_at = least(coalesce(syncs.due_at, 'infinity'), clock_timestamp())
        """,
        {"shop_id": shop_id},
    )
    await tx.notify(LEVELS_CHANNEL, str(shop_id))
