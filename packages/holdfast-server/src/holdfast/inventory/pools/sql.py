"""Statements on pools."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, LiteralString

import msgspec

from holdfast.inventory.pools.model import (
    CreatePool,
    ListPools,
    Member,
    Pool,
    PoolStatus,
    PoolWithMembers,
)
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.substring_search import SearchedTable, search

SELECT_COLUMNS: LiteralString = """
    select pools.id, name, unit, on_hand, held, buffer, greatest(0, on_hand - held - buffer) as available,
           low_stock_at, is_low as low_stock, allow_negative, policy, status::text as status,
           (select count(*) from members where pool_id = pools.id) as member_count, version, inserted_at
"""
SELECT_POOL: LiteralString = f"{SELECT_COLUMNS} from pools "

BY_ID = SearchedTable("pools", "name_key", "id", "shop_id = %(shop_id)s and id > %(after)s")

OF_STATUS: Mapping[PoolStatus | None, LiteralString] = {
    # Under row-level security the planner expects no row for `<> 'archived'`, so all would be read and sorted.
    None: "status = any('{active,paused}'::pool_status[])",
    # Not a parameter: for a parameter the planner expects that most pools have this status.
    "active": "status_key = 'active'",
    "paused": "status_key = 'paused'",
    "archived": "status_key = 'archived'",
}
"""The condition on listed pools, by the requested status."""


async def list_pools(reader: Reader, shop_id: int, command: ListPools) -> list[Pool]:
    """The pools that match, by id, one more than a page."""
    low: LiteralString = "and is_low" if command.low_stock_only else ""

    def listing(source: LiteralString) -> LiteralString:
        return f"""
            {SELECT_COLUMNS} from {source}
             where shop_id = %(shop_id)s and id > %(after)s and {OF_STATUS[command.status]} {low}
             order by {BY_ID.order} limit %(limit)s
            """

    read = partial(reader.rows, Pool)
    params = {
        "shop_id": shop_id,
        "after": command.after(int) or 0,
        "query": command.query,
        "limit": command.limit + 1,
    }
    if command.query is None:
        return await read(listing(BY_ID.table), params)
    return await search(read, BY_ID, listing, params)


def with_members(pool: Pool, members: Sequence[Member]) -> PoolWithMembers:
    return PoolWithMembers(**msgspec.structs.asdict(pool), members=list(members))


async def is_name_in_use(reader: Reader, shop_id: int, name: str, except_id: int = 0) -> bool:
    return await reader.value(
        """
        select exists (select from pools where shop_id = %(shop_id)s and name_key = lower(%(name)s)
                                           and status <> 'archived' and id <> %(except_id)s)
        """,
        {"shop_id": shop_id, "name": name, "except_id": except_id},
    )


async def insert_pool(tx: Tx, shop_id: int, version: int, command: CreatePool) -> int:
    return await tx.value(
        """
        insert into pools (shop_id, name, unit, buffer, low_stock_at, allow_negative, version)
        values (%(shop_id)s, %(name)s, %(unit)s, %(buffer)s, %(low_stock_at)s, %(allow_negative)s, %(version)s)
        returning id
        """,
        {
            "shop_id": shop_id,
            "version": version,
            "name": command.name,
            "unit": command.unit,
            "buffer": command.buffer,
            "low_stock_at": command.low_stock_at,
            "allow_negative": command.allow_negative,
        },
    )


async def update_pool(tx: Tx, shop_id: int, id: int, version: int, fields: Mapping[str, Any]) -> None:
    """Change those fields, and set the version of the pool."""
    await tx.run(
        """
        update pools
           set name = coalesce(new.name, pools.name), unit = coalesce(new.unit, pools.unit),
               buffer = coalesce(new.buffer, pools.buffer),
               low_stock_at = case when %(fields)s::jsonb ? 'low_stock_at' then new.low_stock_at
                                   else pools.low_stock_at end,
               allow_negative = coalesce(new.allow_negative, pools.allow_negative),
               policy = coalesce(new.policy, pools.policy), version = %(version)s
          from jsonb_to_record(%(fields)s) as new (name text, unit text, buffer bigint, low_stock_at bigint,
                                                   allow_negative boolean, policy text)
         where shop_id = %(shop_id)s and pools.id = %(id)s
        """,
        {"shop_id": shop_id, "id": id, "version": version, "fields": msgspec.json.encode(fields).decode()},
    )


async def set_status(tx: Tx, shop_id: int, id: int, version: int, status: PoolStatus) -> None:
    await tx.run(
        """
        update pools set status = %(status)s::pool_status, version = %(version)s
         where shop_id = %(shop_id)s and id = %(id)s
        """,
        {"shop_id": shop_id, "id": id, "version": version, "status": status},
    )
