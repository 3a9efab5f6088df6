"""Statements on pools, on variants, and on what draws on what."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, LiteralString, NamedTuple

import msgspec

from holdfast.inventory.pools.model import (
    CreatePool,
    ListPools,
    Member,
    Pool,
    PoolWithMembers,
    Status,
)
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.containing import Place, search

SHOWN: LiteralString = """
    select pools.id, name, unit, on_hand, held, buffer, greatest(0, on_hand - held - buffer) as available,
           low_stock_at, is_low as low_stock, allow_negative, policy, status::text as status,
           (select count(*) from members where pool_id = pools.id) as member_count, version, inserted_at
"""
POOL: LiteralString = f"{SHOWN} from pools "

BY_ID = Place("pools", "name_key", "id", "shop_id = %(shop_id)s and id > %(after)s")

OF_STATUS: Mapping[Status | None, LiteralString] = {
    # Of `<> 'archived'` it is believed under row-level security that no row is so, and all are read and sorted.
    None: "status = any('{active,paused}'::pool_status[])",
    # In the statement itself: of a parameter it is believed that most pools have this status.
    "active": "status_key = 'active'",
    "paused": "status_key = 'paused'",
    "archived": "status_key = 'archived'",
}
"""Which pools are listed, by the status that is asked for."""


class Named(NamedTuple):
    """The keys of names, and the pools by key."""

    keys: Mapping[str, str]
    pools: Mapping[str, Pool]

    def pool(self, name: str) -> Pool | None:
        return self.pools.get(self.keys[name])


async def list_pools(reader: Reader, shop_id: int, command: ListPools) -> list[Pool]:
    """The pools that fit, by id, one more than a page."""
    low: LiteralString = "and is_low" if command.low_stock_only else ""

    def listing(source: LiteralString) -> LiteralString:
        return f"""
            {SHOWN} from {source}
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


async def find_pools(reader: Reader, shop_id: int, ids: Collection[int]) -> dict[int, Pool]:
    rows = await reader.rows(
        Pool, POOL + "where shop_id = %(shop_id)s and id = any(%(ids)s)", {"shop_id": shop_id, "ids": list(ids)}
    )
    return {pool.id: pool for pool in rows}


def with_members(pool: Pool, members: Sequence[Member]) -> PoolWithMembers:
    return PoolWithMembers(**msgspec.structs.asdict(pool), members=list(members))


async def find_by_name(reader: Reader, shop_id: int, names: Collection[str]) -> Named:
    """The pools of those names that are not archived. The database decides which names are the same."""
    keys = dict(
        await reader.tuples("select name, lower(name) from unnest(%(names)s::text[]) as name", {"names": [*names]})
    )
    rows = await reader.rows(
        Pool,
        POOL
        + """
         where shop_id = %(shop_id)s and id = any(array(
               select named.id from unnest(%(keys)s::text[]) as key
                cross join lateral (select id from pools where shop_id = %(shop_id)s and name_key = key
                                                           and status <> 'archived' limit 1) as named))
        """,
        {"shop_id": shop_id, "keys": [*keys.values()]},
    )
    own = dict(
        await reader.tuples(
            "select id, name_key from pools where shop_id = %(shop_id)s and id = any(%(ids)s)",
            {"shop_id": shop_id, "ids": [pool.id for pool in rows]},
        )
    )
    return Named(keys, {own[pool.id]: pool for pool in rows})


async def is_name_taken(reader: Reader, shop_id: int, name: str, but_for: int = 0) -> bool:
    return await reader.value(
        """
        select exists (select from pools where shop_id = %(shop_id)s and name_key = lower(%(name)s)
                                           and status <> 'archived' and id <> %(but_for)s)
        """,
        {"shop_id": shop_id, "name": name, "but_for": but_for},
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
    """Change the fields given, and set the version of the pool."""
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


async def save_pools(tx: Tx, shop_id: int, version: int, pools: Sequence[Mapping[str, Any]]) -> None:
    """Create pools, and change those whose `id` is given; what is null stays as it is."""
    await tx.run(
        """
        with wanted as (
            select * from json_to_recordset(%(pools)s) as wanted (
                id bigint, name text, unit text, buffer bigint, low_stock_at bigint)),
        changed as (
            update pools
               set unit = coalesce(wanted.unit, pools.unit), buffer = coalesce(wanted.buffer, pools.buffer),
                   low_stock_at = coalesce(wanted.low_stock_at, pools.low_stock_at), version = %(version)s
              from wanted where shop_id = %(shop_id)s and pools.id = wanted.id)
        insert into pools (shop_id, name, unit, buffer, low_stock_at, version)
        select %(shop_id)s, name, coalesce(unit, 'units'), coalesce(buffer, 0), low_stock_at, %(version)s
          from wanted where id is null
        """,
        {"shop_id": shop_id, "version": version, "pools": msgspec.json.encode(pools).decode()},
    )


async def set_status(tx: Tx, shop_id: int, id: int, version: int, status: Status) -> None:
    await tx.run(
        """
        update pools set status = %(status)s::pool_status, version = %(version)s
         where shop_id = %(shop_id)s and id = %(id)s
        """,
        {"shop_id": shop_id, "id": id, "version": version, "status": status},
    )
