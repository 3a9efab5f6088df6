"""Statements on the leases of shops, and on what their levels need."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import LiteralString

from msgspec import Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.scopes import CART_CHECK
from holdfast.inventory.sync import numbers

TOLD_SECONDS = 1.0
"""How long to wait until the platform tells what became of a level that had moved, before it is asked."""

LEASE_SECONDS = 150
"""How long a process has for one call of a shop: longer than that may take."""


class Taken(Struct, frozen=True):
    """A shop that this process attends to until then. `attempts`: how often it was tried without success, with this."""

    shop_id: int
    until: datetime
    attempts: int


async def take(tx: Tx, limit: int, shop_ids: Collection[int] | None, resting: Collection[int] = ()) -> list[Taken]:
    """Take shops whose pools have changed, or that are due. Nobody else takes them until their lease ends.

    shop_ids    only these; None: any
    resting     none of these
    """
    named: LiteralString = "" if shop_ids is None else "and syncs.shop_id = any(%(shop_ids)s)"
    return await tx.rows(
        Taken,
        f"""
        update syncs
           set leased_until = clock_timestamp() + %(lease)s * interval '1 second', due_at = now(),
               attempts = attempts + 1
         where shop_id = any(array(
               select syncs.shop_id from syncs
                 join installs on installs.shop_id = syncs.shop_id and uninstalled_at is null and broken is null
                 join shared_inventories as shared on shared.shop_id = syncs.shop_id
                 left join catalogs on catalogs.shop_id = syncs.shop_id
                where (leased_until is null or leased_until <= now())
                  and (due_at <= now() or version > planned_version or coalesce(changes, 0) > planned_changes
                       or numbers <> (%(cart_check)s = any(scopes)))
                  {named} and syncs.shop_id <> all(%(resting)s)
                order by due_at nulls last limit %(limit)s for update of syncs skip locked))
        returning shop_id, leased_until as until, attempts
        """,
        {
            "limit": limit,
            "lease": LEASE_SECONDS,
            "shop_ids": None if shop_ids is None else [*shop_ids],
            "resting": [*resting],
            "cart_check": CART_CHECK,
        },
    )


async def prolong(tx: Tx, shop_id: int, until: datetime) -> datetime | None:
    """Prolong a lease, and return when it ends now; None: it is somebody else's."""
    return await tx.value(
        """
        update syncs set leased_until = clock_timestamp() + %(lease)s * interval '1 second'
         where shop_id = %(shop_id)s and leased_until = %(until)s returning leased_until
        """,
        {"shop_id": shop_id, "until": until, "lease": LEASE_SECONDS},
    )


async def release(tx: Tx, shop_id: int, until: datetime, error: str | None, pause: float) -> None:
    """End a lease; after an error, nobody takes the shop for a while. It is due again when its next level is."""
    held = await tx.value(
        "select true from syncs where shop_id = %(shop_id)s and leased_until = %(until)s for update",
        {"shop_id": shop_id, "until": until},
    )
    if not held:
        return
    await tx.run(
        f"""
        update syncs
           set leased_until = case when %(error)s::text is not null
                                   then clock_timestamp() + %(pause)s * interval '1 second' end,
               attempts = case when %(error)s::text is null then 0 else attempts end,
               error = left(%(error)s, 1000),
               due_at = case when %(error)s::text is not null then now() else least((
                   select min(case when read_again
                                   then coalesce(pushed_at + %(told)s * interval '1 second', now())
                                   when wanted <> available and push_id is null and parked is null
                                        and target is not null then coalesce(pushed_at + interval '500 ms', now())
                                   else suspect_at end)
                     from levels where shop_id = %(shop_id)s
                      and (read_again or suspect_at is not null or wanted <> available)), {numbers.DUE}) end
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "error": error, "pause": pause, "told": TOLD_SECONDS},
    )


async def hand_over(tx: Tx, shop_id: int, until: datetime) -> None:
    """End a lease in the middle of the work: the shop is due at once."""
    await tx.run(
        """
        update syncs set leased_until = null, due_at = now(), attempts = greatest(attempts - 1, 0)
         where shop_id = %(shop_id)s and leased_until = %(until)s
        """,
        {"shop_id": shop_id, "until": until},
    )


async def next_due(reader: Reader, resting: Collection[int]) -> float | None:
    """Seconds until the next shop is due; None if none is. `resting`: shops that are left out."""
    return await reader.value(
        """
        select extract(epoch from min(greatest(due_at, leased_until)) - clock_timestamp())::float8
          from syncs
         cross join lateral (select from installs where installs.shop_id = syncs.shop_id and uninstalled_at is null
                                                    and broken is null limit 1) as connected
         where due_at is not null and shop_id <> all(%(resting)s)
        """,
        {"resting": [*resting]},
    )


async def to_read(tx: Tx, shop_id: int, limit: int) -> list[tuple[str, str, str]]:
    """Levels that are to be read again: item, location and id."""
    rows: Sequence[tuple[str, str, str]] = await tx.tuples(
        """
        select item_gid, location_gid, gid from levels
         where shop_id = %(shop_id)s and read_again
           and (pushed_at is null or pushed_at <= clock_timestamp() - %(told)s * interval '1 second')
         order by item_gid, location_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": limit, "told": TOLD_SECONDS},
    )
    return [*rows]


async def suspects(tx: Tx, shop_id: int, limit: int) -> list[tuple[str, str, str]]:
    """Levels of variants with differences that were not explained in time: item, location and id."""
    rows: Sequence[tuple[str, str, str]] = await tx.tuples(
        """
        select item_gid, location_gid, gid from levels
         where shop_id = %(shop_id)s
           and item_gid in (select item_gid from levels
                             where shop_id = %(shop_id)s and suspect_at <= clock_timestamp() and push_id is null)
         order by item_gid, location_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": limit},
    )
    return [*rows]


async def forget_lags(tx: Tx) -> int:
    """Delete a portion of what was measured a day ago. Returns how many rows."""
    return await tx.value(
        """
        with old as (
            delete from sync_lags where ctid = any(array(
                   select ctid from sync_lags where pushed_at < now() - interval '1 day' limit 5000)) returning 1)
        select count(*) from old
        """
    )
