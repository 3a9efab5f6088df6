"""Statements on the leases of shops, and on the needs of their levels."""

from collections.abc import Collection, Sequence
from typing import LiteralString
from uuid import UUID, uuid4

from msgspec import Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.domains import CART_CHECK
from holdfast.inventory.sync import cart_check
from holdfast.kit.background.leases import LEASE_SECONDS

WEBHOOK_WAIT_SECONDS = 1.0
"""Seconds to wait for the webhook of a level that had moved, before the level is read."""


class LeasedShop(Struct, frozen=True):
    """A shop that this process has leased.

    attempts    tries since the last success, with this one
    """

    shop_id: int
    lease_id: UUID
    attempts: int


async def lease_shops(
    tx: Tx, limit: int, shop_ids: Collection[int] | None, excluded_shops: Sequence[int]
) -> list[LeasedShop]:
    """Lease shops whose pools have changed, or that are due. No other process leases them until their lease ends.

    shop_ids          only these; None: any
    excluded_shops    none of these
    """
    shop_condition: LiteralString = "" if shop_ids is None else "and syncs.shop_id = any(%(shop_ids)s)"
    return await tx.rows(
        LeasedShop,
        f"""
        update syncs
           set leased_until = clock_timestamp() + %(lease)s * interval '1 second', due_at = now(),
               attempts = attempts + 1, lease_id = %(lease_id)s
         where shop_id = any(array(
               select syncs.shop_id from syncs
                 join installs on installs.shop_id = syncs.shop_id and uninstalled_at is null and broken is null
                 join shared_inventories as shared on shared.shop_id = syncs.shop_id
                 left join catalogs on catalogs.shop_id = syncs.shop_id
                where (leased_until is null or leased_until <= now())
                  and (due_at <= now() or version > planned_version or coalesce(changes, 0) > planned_changes
                       or numbers <> (%(cart_check)s = any(scopes)))
                  {shop_condition} and syncs.shop_id <> all(%(excluded_shops)s)
                order by due_at nulls last limit %(limit)s for update of syncs skip locked))
        returning shop_id, lease_id, attempts
        """,
        {
            "limit": limit,
            "lease": LEASE_SECONDS,
            "lease_id": uuid4(),
            "shop_ids": None if shop_ids is None else [*shop_ids],
            "excluded_shops": [*excluded_shops],
            "cart_check": CART_CHECK,
        },
    )


async def renew_lease(tx: Tx, shop_id: int, lease_id: UUID) -> bool:
    """Renew a lease. False: another process has leased the shop, or the lease was given back."""
    prolonged = await tx.value(
        """
        update syncs set leased_until = clock_timestamp() + %(lease)s * interval '1 second'
         where shop_id = %(shop_id)s and lease_id = %(lease_id)s returning true
        """,
        {"shop_id": shop_id, "lease_id": lease_id, "lease": LEASE_SECONDS},
    )
    return bool(prolonged)


async def is_leased_by_another(tx: Tx, shop_id: int, lease_id: UUID) -> bool:
    """Whether a shop has another lease."""
    return await tx.value(
        "select exists (select from syncs where shop_id = %(shop_id)s and lease_id <> %(lease_id)s)",
        {"shop_id": shop_id, "lease_id": lease_id},
    )


async def end_lease(tx: Tx, shop_id: int, lease_id: UUID, error: str | None, pause: float) -> None:
    """End a lease. After an error the shop rests for `pause` seconds; else it is due again with its next level."""
    is_leased = await tx.value(
        "select true from syncs where shop_id = %(shop_id)s and lease_id = %(lease_id)s for update",
        {"shop_id": shop_id, "lease_id": lease_id},
    )
    if not is_leased:
        return
    await tx.run(
        f"""
        update syncs
           set leased_until = case when %(error)s::text is not null
                                   then clock_timestamp() + %(pause)s * interval '1 second' end,
               attempts = case when %(error)s::text is null then 0 else attempts end,
               error = left(%(error)s, 1000), lease_id = null,
               due_at = case when %(error)s::text is not null then now() else least((
                   select min(case when read_again
                                   then coalesce(pushed_at + %(webhook_wait)s * interval '1 second', now())
                                   when wanted <> available and push_id is null and parked is null
                                        and target is not null then coalesce(pushed_at + interval '500 ms', now())
                                   else suspect_at end)
                     from levels where shop_id = %(shop_id)s
                      and (read_again or suspect_at is not null or wanted <> available)), {cart_check.DUE}) end
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "error": error, "pause": pause, "webhook_wait": WEBHOOK_WAIT_SECONDS},
    )


async def hand_over(tx: Tx, shop_id: int, lease_id: UUID) -> None:
    """End a lease in the middle of the work: the shop is due at once."""
    await tx.run(
        """
        update syncs set leased_until = null, lease_id = null, due_at = now(), attempts = greatest(attempts - 1, 0)
         where shop_id = %(shop_id)s and lease_id = %(lease_id)s
        """,
        {"shop_id": shop_id, "lease_id": lease_id},
    )


async def seconds_until_due(reader: Reader, excluded_shops: Sequence[int]) -> float | None:
    """The seconds until the next shop is due; None if none is. `excluded_shops`: shops that are left out."""
    return await reader.value(
        """
        select extract(epoch from min(greatest(due_at, leased_until)) - clock_timestamp())::float8
          from syncs
         cross join lateral (select from installs where installs.shop_id = syncs.shop_id and uninstalled_at is null
                                                    and broken is null limit 1) as connected
         where due_at is not null and shop_id <> all(%(excluded_shops)s)
        """,
        {"excluded_shops": [*excluded_shops]},
    )


async def levels_to_read(tx: Tx, shop_id: int, limit: int) -> list[tuple[str, str, str]]:
    """The levels to be read again: item, location and id."""
    rows: Sequence[tuple[str, str, str]] = await tx.tuples(
        """
        select item_gid, location_gid, gid from levels
         where shop_id = %(shop_id)s and read_again
           and (pushed_at is null or pushed_at <= clock_timestamp() - %(webhook_wait)s * interval '1 second')
         order by item_gid, location_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": limit, "webhook_wait": WEBHOOK_WAIT_SECONDS},
    )
    return [*rows]


async def unexplained_levels(tx: Tx, shop_id: int, limit: int) -> list[tuple[str, str, str]]:
    """The levels of variants with differences that were not explained in time: item, location and id.

    limit    the number of variants, of which all levels are returned
    """
    rows: Sequence[tuple[str, str, str]] = await tx.tuples(
        """
        select item_gid, location_gid, gid from levels
         where shop_id = %(shop_id)s
           and item_gid in (select distinct item_gid from levels
                             where shop_id = %(shop_id)s and suspect_at <= clock_timestamp() and push_id is null
                             order by item_gid limit %(limit)s)
         order by item_gid, location_gid
        """,
        {"shop_id": shop_id, "limit": limit},
    )
    return [*rows]


async def forget_lags(tx: Tx) -> int:
    """Delete a batch of the lags that were measured a day ago. Returns how many rows."""
    return await tx.value(
        """
        with deleted as (
            delete from sync_lags where ctid = any(array(
                   select ctid from sync_lags where pushed_at < now() - interval '1 day' limit 5000)) returning 1)
        select count(*) from deleted
        """
    )


async def forget_changes(tx: Tx) -> int:
    """Delete a batch of the changes by orders that no level has needed for a day, and of old ends of levels.

    Returns how many rows.
    """
    return await tx.value(
        """
        with old_changes as (
            delete from order_level_changes where ctid = any(array(
                   select ctid from order_level_changes where received_at < now() - interval '1 day' limit 5000))
            returning 1),
        old_ends as (
            delete from ended_levels where ctid = any(array(
                   select ctid from ended_levels where ended_at < now() - interval '1 day' limit 5000)) returning 1)
        select (select count(*) from old_changes) + (select count(*) from old_ends)
        """
    )
