"""The statements that choose what a call sets, and store what came of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

import msgspec
from cachetools import LRUCache

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import Push, Setting, Unsettable

AT_ONCE = 250
"""The most levels that one call sets: the platform takes no more."""

SHOPS = 10_000
"""The most shops of which a process knows how many levels a call may set."""

APART_SECONDS = 0.5
"""Seconds from the outcome of a call to the next that sets the same level."""

MOST_IN_A_ROW = 8
"""How often a level is set, at most, while no pool changes. Then somebody else sets it too, and it is parked."""

READY: LiteralString = """
    shop_id = %(shop_id)s and wanted <> available and push_id is null and parked is null and not read_again
    and target is not null
"""


class Sizes:
    """How many levels a call of each shop sets at most.

    The platform refuses a call as a whole if one of its levels has moved. So where much is sold, only small calls are
    accepted: after one that was refused the next has at most those levels that had not moved, or half of them if they
    were the fewer; after one that was accepted it may be twice as large.
    """

    def __init__(self) -> None:
        self._sizes: LRUCache[int, int] = LRUCache(SHOPS)

    def of(self, shop_id: int) -> int:
        return self._sizes.get(shop_id, AT_ONCE)

    def accepted(self, shop_id: int) -> None:
        self._sizes[shop_id] = min(self.of(shop_id) * 2, AT_ONCE)

    def refused(self, shop_id: int, levels: int, moved: int) -> None:
        """A call of so many levels was refused, because so many of them had moved."""
        still = levels - moved
        self._sizes[shop_id] = max(still if still >= moved else still // 2, 1)


async def next_push(tx: Tx, shop_id: int, most: int) -> Push | None:
    """The call that is under way, as it was; else a new one for levels that are not as wanted; None: there are none."""
    if push := await _under_way(tx, shop_id):
        return push
    chosen = await tx.value(
        f"""
        with chosen as (
            select shop_id, item_gid, location_gid from levels
             where {READY} and (pushed_at is null or pushed_at <= clock_timestamp() - %(apart)s * interval '1 second')
             order by pushed_at nulls first limit %(limit)s for no key update skip locked),
        made as (insert into pushes (shop_id) select %(shop_id)s where exists (select from chosen) returning id),
        taken as (
            update levels set push_id = made.id, pushed_from = available, pushed_to = wanted
              from chosen, made
             where levels.shop_id = chosen.shop_id and levels.item_gid = chosen.item_gid
               and levels.location_gid = chosen.location_gid returning 1)
        select count(*) from taken
        """,
        {"shop_id": shop_id, "limit": most, "apart": APART_SECONDS},
    )
    return await _under_way(tx, shop_id) if chosen else None


async def _under_way(tx: Tx, shop_id: int) -> Push | None:
    rows = await tx.tuples(
        """
        select id, key::text, extract(epoch from clock_timestamp() - inserted_at)::float8,
               item_gid, location_gid, pushed_from, pushed_to
          from pushes left join levels on levels.push_id = pushes.id
         where pushes.shop_id = %(shop_id)s order by item_gid, location_gid
        """,
        {"shop_id": shop_id},
    )
    if not rows:
        return None
    id, key, age, *_ = rows[0]
    levels = [Setting(item, place, before, after) for _, _, _, item, place, before, after in rows if item]
    return Push(id, key, age, levels)


async def accepted(tx: Tx, shop_id: int, push: Push, at: datetime | None) -> list[float]:
    """Store that the platform has set the levels of a call. Returns the seconds from each cause until now.

    at    when, by the platform's clock
    """
    await _lock(tx, shop_id, push)
    lags = await tx.tuples(
        """
        with done as (
            select caused_at from levels where push_id = %(id)s and caused_at is not null),
        acknowledged as (
            update levels
               set expected = expected + pushed_to - pushed_from,
                   available = case when available = pushed_from then pushed_to else available end,
                   seen_at = greatest(seen_at, %(at)s), pushed_at = clock_timestamp(), push_id = null,
                   pushed_from = null, pushed_to = null, caused_at = null, brisk = brisk + 1,
                   parked = case when brisk + 1 >= %(most)s
                                 then 'Somebody else sets it as often as it is set from here.' end
             where push_id = %(id)s)
        insert into sync_lags (shop_id, seconds)
        select distinct on (caused_at) %(shop_id)s, extract(epoch from clock_timestamp() - caused_at) from done
        returning seconds
        """,
        {"shop_id": shop_id, "id": push.id, "at": at, "most": MOST_IN_A_ROW},
    )
    await _end(tx, shop_id, push)
    return [seconds for (seconds,) in lags]


async def refused(tx: Tx, shop_id: int, push: Push, unsettable: Sequence[Unsettable]) -> None:
    """Store that the platform has set none of the levels of a call, and what was wrong with some of them."""
    await _lock(tx, shop_id, push)
    await tx.run(
        """
        with given as (
            select * from json_to_recordset(%(unsettable)s) as given (item_gid text, location_gid text, why text)),
        released as (
            select levels.item_gid, levels.location_gid, given.item_gid is not null as wrong, why
              from levels left join given
                on given.item_gid = levels.item_gid and given.location_gid = levels.location_gid
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


async def _lock(tx: Tx, shop_id: int, push: Push) -> None:
    await levels.lock(tx, shop_id, {each.item_gid for each in push.levels})


async def _end(tx: Tx, shop_id: int, push: Push) -> None:
    await tx.run("delete from pushes where id = %(id)s", {"id": push.id})
    await levels.weigh(tx, shop_id, {each.item_gid for each in push.levels})
