"""Statements on holds."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.model import (
    ActiveHold,
    HeldQuantity,
    ListHolds,
    StoredHold,
)


async def insert_holds(tx: Tx, shop_id: int, holds: Sequence[StoredHold], now: datetime) -> None:
    await tx.run(
        """
        with hold as (
            select * from json_to_recordset(%(holds)s) as hold (
                id bigint, reference text, expires_at timestamptz, lines json)),
        inserted_holds as (
            insert into holds (shop_id, id, reference, expires_at, inserted_at)
            select %(shop_id)s, id, reference, expires_at, %(now)s from hold)
        insert into hold_lines (shop_id, hold_id, pool_id, quantity)
        select %(shop_id)s, hold.id, line.key::bigint, line.value::bigint
          from hold cross join lateral json_each_text(hold.lines) as line
        """,
        {"shop_id": shop_id, "holds": msgspec.json.encode(holds).decode(), "now": now},
    )


async def find_holds(reader: Reader, shop_id: int, ids: Collection[int]) -> list[StoredHold]:
    rows = await reader.tuples(
        """
        select id, reference, expires_at, released_at, sold,
               (select json_object_agg(pool_id, quantity) from hold_lines
                 where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id)
          from holds where shop_id = %(shop_id)s and id = any(%(ids)s)
        """,
        {"shop_id": shop_id, "ids": list(ids)},
    )
    return [
        StoredHold(
            id, reference, expires_at, released_at, {int(pool): quantity for pool, quantity in lines.items()}, sold
        )
        for id, reference, expires_at, released_at, sold, lines in rows
    ]


async def end_holds(tx: Tx, shop_id: int, holds: Sequence[StoredHold]) -> None:
    await tx.run(
        """
        update holds set released_at = clock_timestamp(), sold = id = any(%(sold)s)
         where shop_id = %(shop_id)s and id = any(%(ids)s) and released_at is null
        """,
        {"shop_id": shop_id, "ids": [hold.id for hold in holds], "sold": [hold.id for hold in holds if hold.sold]},
    )


async def list_holds(reader: Reader, shop_id: int, command: ListHolds) -> list[ActiveHold]:
    """The active holds that match, the newest first, one more than a page."""
    rows = await reader.tuples(
        """
        select id, reference, expires_at, inserted_at,
               (select json_agg(json_build_object('pool_id', pool_id, 'quantity', quantity) order by pool_id)
                  from hold_lines where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id)
          from holds
         where shop_id = %(shop_id)s and released_at is null
           and id < coalesce(%(after)s, 9223372036854775807)
           and (%(reference)s::text is null or reference = %(reference)s)
           and (%(pool_id)s::bigint is null
                or exists (select from hold_lines where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id
                                                    and pool_id = %(pool_id)s))
         order by id desc limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "after": command.after(int),
            "reference": command.reference,
            "pool_id": command.pool_id,
            "limit": command.limit + 1,
        },
    )
    return [
        ActiveHold(id, reference, expires_at, inserted_at, msgspec.convert(pools, list[HeldQuantity]))
        for id, reference, expires_at, inserted_at, pools in rows
    ]


async def list_expired_holds(reader: Reader, limit: int) -> Mapping[int, list[int]]:
    """The ids of expired holds by shop, of at most a thousand shops.

    limit    the most holds of one shop
    """
    rows = await reader.tuples(
        """
        -- An index is searched for a moment that is computed once; clock_timestamp() itself is computed for each row.
        with expired as materialized (
            select shop_id, id, expires_at from holds
             where released_at is null and expires_at <= (select clock_timestamp()) order by expires_at)
        select shop_id, array_agg(id order by expires_at)
          from (select *, row_number() over (partition by shop_id order by expires_at) as number from expired) as due
         where number <= %(limit)s
         group by shop_id limit 1000
        """,
        {"limit": limit},
    )
    return dict(rows)


async def seconds_until_expiry(reader: Reader, excluded_ids: Sequence[int] = ()) -> float | None:
    """The seconds until the next hold expires. Holds of the excluded shops do not count."""
    return await reader.value(
        """
        select extract(epoch from min(expires_at) - clock_timestamp())::float from holds
         where released_at is null and shop_id <> all(%(excluded_ids)s)
        """,
        {"excluded_ids": list(excluded_ids)},
    )
