"""The statements that choose the levels of a call, and store its result.

Most calls change levels by a difference: the target from the pools, less what calls and orders explain. That is right
whatever the levels are, so none is refused because a level has moved meanwhile. A level is set, and compared with its
last known quantity, if it is set for the first time, if no pool has changed since the last call (another program
changed it), if it would fall below zero, and if another location of the item has a difference.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

import msgspec
from cachetools import LRUCache

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.level_calls import AcceptedPush
from holdfast.inventory.sync.model import ANOTHER_APP, PUSH_STREAK, LevelChange, LevelPush, LevelRefusal, ObservedLevel
from holdfast.kit.contract.bounds import cache_bound

MAX_LEVELS_PER_PUSH = 250
"""The most levels in one call: a limit of the platform."""

MAX_CACHED_SHOPS = 10_000
"""The most shops whose size of a call a process remembers."""

MIN_PUSH_INTERVAL_SECONDS = 0.5
"""Seconds from the result of a call to the next call that changes the same level."""

MAX_PUSH_STREAK = 8
"""How often a level is changed at most while no pool changes. Then another program sets it too, and it is parked."""

IS_READY: LiteralString = """
    shop_id = %(shop_id)s and wanted <> available and push_id is null and parked is null and not read_again
    and target is not null
"""

IS_ADJUSTABLE: LiteralString = f"""
    pushed_at is not null and {PUSH_STREAK} = 0 and wanted = target + available - expected
    and not exists (select from levels as other_level
                     where other_level.shop_id = levels.shop_id and other_level.item_gid = levels.item_gid
                       and other_level.location_gid <> levels.location_gid
                       and other_level.target is not null and other_level.available <> other_level.expected)
"""
"""Whether a ready level may be changed by a difference, whatever its quantity.

Orders do not name a location. A difference at another location that we set may belong to this one, so this one is
compared.
"""


PUSH_SIZES = cache_bound(
    "Shops whose size of a push is remembered", "inventory", f"{MAX_CACHED_SHOPS}", lost="is found again"
)


class PushSizes:
    """The most levels that a call of each shop sets.

    The platform refuses such a call as a whole if one of its levels has moved, so a shop that sells much needs small
    calls. After a refused call the next has at most as many levels as had not moved, or half of them if they were the
    fewer. After an accepted call the next may be twice as large.
    """

    def __init__(self) -> None:
        self._sizes: LRUCache[int, int] = LRUCache(MAX_CACHED_SHOPS)

    def size_of(self, shop_id: int) -> int:
        """The most levels of the next call of a shop."""
        return self._sizes.get(shop_id, MAX_LEVELS_PER_PUSH)

    def note_accepted(self, shop_id: int) -> None:
        """Let the next call of a shop be larger."""
        self._sizes[shop_id] = min(self.size_of(shop_id) * 2, MAX_LEVELS_PER_PUSH)

    def note_refused(self, shop_id: int, level_count: int, moved_count: int) -> None:
        """Let the next call of a shop be smaller, after a refused call of which `moved_count` levels had moved."""
        unmoved = level_count - moved_count
        self._sizes[shop_id] = max(unmoved if unmoved >= moved_count else unmoved // 2, 1)


async def next_push(tx: Tx, shop_id: int, max_levels: int) -> LevelPush | None:
    """The call under way unchanged; else a new call for levels that are not as wanted; None: there are none.

    max_levels  the most levels of a call that sets them
    """
    if push := await _push_in_progress(tx, shop_id):
        return push
    chosen = await tx.value(
        f"""
        with ready_level as (
            select shop_id, item_gid, location_gid, pushed_at, {IS_ADJUSTABLE} as adjusts from levels
             where {IS_READY}
               and (pushed_at is null or pushed_at <= clock_timestamp() - %(apart)s * interval '1 second')
             order by pushed_at nulls first limit %(limit)s for no key update skip locked),
        new_push as (
            insert into pushes (shop_id, key, adjust_key)
            select %(shop_id)s, case when not adjusts then gen_random_uuid() end,
                   case when adjusts then gen_random_uuid() end
              from (select bool_or(adjusts) as adjusts from ready_level) as kind_of_push where adjusts is not null
            returning id, adjust_key is not null as adjusts),
        numbered_level as (
            select *, row_number() over (order by pushed_at nulls first) as rank from ready_level),
        pushed_level as (
            update levels set push_id = new_push.id, pushed_from = available, pushed_to = wanted
              from numbered_level, new_push
             where levels.shop_id = numbered_level.shop_id and levels.item_gid = numbered_level.item_gid
               and levels.location_gid = numbered_level.location_gid
               and numbered_level.adjusts = new_push.adjusts and (new_push.adjusts or rank <= %(max_count)s)
            returning 1)
        select count(*) from pushed_level
        """,
        {"shop_id": shop_id, "limit": MAX_LEVELS_PER_PUSH, "max_count": max_levels, "apart": MIN_PUSH_INTERVAL_SECONDS},
    )
    return await _push_in_progress(tx, shop_id) if chosen else None


class _StoredPush(NamedTuple):
    """A call as it is stored, with its fields as in `LevelPush`."""

    id: int
    key: str
    adjusts: bool
    age: float


async def _push_in_progress(tx: Tx, shop_id: int) -> LevelPush | None:
    rows = await tx.pairs(
        _StoredPush,
        LevelChange,
        """
        select id, coalesce(key, adjust_key)::text as key, adjust_key is not null as adjusts,
               extract(epoch from clock_timestamp() - inserted_at)::float8 as age,
               item_gid, location_gid, gid, pushed_from as before, pushed_to as after
          from pushes left join levels on levels.push_id = pushes.id
         where pushes.shop_id = %(shop_id)s order by item_gid, location_gid
        """,
        {"shop_id": shop_id},
    )
    if not rows:
        return None
    [(push, _), *_] = rows
    # A push whose levels are gone has one row, with an empty level.
    return LevelPush(push.id, push.key, push.adjusts, push.age, [level for _, level in rows if level.item_gid])


async def store_accepted(tx: Tx, shop_id: int, push: LevelPush, accepted: AcceptedPush) -> list[float]:
    """Store that the platform has changed the levels of a call. Returns the seconds from each cause until now."""
    await _lock(tx, shop_id, push)
    lags = await tx.tuples(
        f"""
        with caused_level as (
            select caused_at from levels where push_id = %(id)s and caused_at is not null),
        pushed_level as (
            select levels.item_gid, levels.location_gid, after
              from levels
              left join json_to_recordset(%(left)s) as reading (item_gid text, location_gid text, after bigint)
                on reading.item_gid = levels.item_gid and reading.location_gid = levels.location_gid
             where push_id = %(id)s),
        updated_level as (
            update levels
               set expected = expected + pushed_to - pushed_from,
                   -- What was heard since the call was chosen may be newer.
                   available = case when available = pushed_from then coalesce(after, pushed_to)
                                    when seen_at < %(at)s then coalesce(after, available)
                                    else available end,
                   -- It may have been set back after the call.
                   read_again = read_again or available = pushed_from and coalesce(seen_at > %(at)s, false),
                   seen_at = greatest(seen_at, %(at)s), pushed_at = clock_timestamp(), push_id = null,
                   pushed_from = null, pushed_to = null, caused_at = null, {PUSH_STREAK} = {PUSH_STREAK} + 1,
                   parked = case when {PUSH_STREAK} + 1 >= %(max_count)s then %(another_app)s end
              from pushed_level
             where levels.shop_id = %(shop_id)s and levels.item_gid = pushed_level.item_gid
               and levels.location_gid = pushed_level.location_gid)
        insert into sync_lags (shop_id, seconds)
        select distinct on (caused_at) %(shop_id)s, extract(epoch from clock_timestamp() - caused_at) from caused_level
        returning seconds
        """,
        {
            "shop_id": shop_id,
            "id": push.id,
            "at": accepted.at,
            "left": msgspec.json.encode(accepted.left).decode(),
            "max_count": MAX_PUSH_STREAK,
            "another_app": ANOTHER_APP,
        },
    )
    await _end(tx, shop_id, push)
    return [seconds for (seconds,) in lags]


async def begin_again(tx: Tx, shop_id: int, push: LevelPush, observed: Sequence[ObservedLevel]) -> None:
    """Store levels as they were just read, because the platform no longer tells the result of a call that changes them.

    Their differences need no explanation, because the call may be the reason. They are set like new levels.
    """
    await _lock(tx, shop_id, push)
    if not await tx.value("select true from pushes where id = %(id)s for update", {"id": push.id}):
        return  # another process has stored the result
    observed_levels = {(level.item_gid, level.location_gid) for level in observed}
    gone = [pair for level in push.levels if (pair := (level.item_gid, level.location_gid)) not in observed_levels]
    await levels.forget(tx, shop_id, gone)
    await levels.observe(tx, shop_id, observed, is_just_read=True)
    await levels.release_changes(tx, shop_id, [(level.item_gid, level.location_gid) for level in push.levels])
    await tx.run(
        """
        update levels set expected = null, suspect_at = null, pushed_at = null,
                          push_id = null, pushed_from = null, pushed_to = null
         where push_id = %(id)s
        """,
        {"id": push.id},
    )
    await _end(tx, shop_id, push)


async def store_refused(tx: Tx, shop_id: int, push: LevelPush, unsettable: Sequence[LevelRefusal]) -> None:
    """Store that the platform has changed none of the levels of a call, and why some of them were refused."""
    await _lock(tx, shop_id, push)
    await tx.run(
        """
        with refusal as (
            select * from json_to_recordset(%(unsettable)s) as refusal (item_gid text, location_gid text, why text)),
        released as (
            select levels.item_gid, levels.location_gid, refusal.item_gid is not null as wrong, why
              from levels left join refusal
                on refusal.item_gid = levels.item_gid and refusal.location_gid = levels.location_gid
             where push_id = %(id)s)
        update levels
           set push_id = null, pushed_from = null, pushed_to = null,
               read_again = read_again or wrong and why is null, parked = left(coalesce(why, parked), 500),
               pushed_at = case when wrong then clock_timestamp() else pushed_at end
          from released
         where shop_id = %(shop_id)s and levels.item_gid = released.item_gid
           and levels.location_gid = released.location_gid
        """,
        {"shop_id": shop_id, "id": push.id, "unsettable": msgspec.json.encode(unsettable).decode()},
    )
    await _end(tx, shop_id, push)


async def _lock(tx: Tx, shop_id: int, push: LevelPush) -> None:
    await levels.lock(tx, shop_id, {level.item_gid for level in push.levels})


async def _end(tx: Tx, shop_id: int, push: LevelPush) -> None:
    await tx.run("delete from pushes where id = %(id)s", {"id": push.id})
    await levels.recheck(tx, shop_id, {level.item_gid for level in push.levels})
