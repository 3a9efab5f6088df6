"""Statements on pools, on variants, and on what draws on what."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import msgspec

from holdfast.inventory.pools.model import (
    CreatePool,
    FindVariant,
    ListPools,
    Member,
    MemberFields,
    Pool,
    PoolWithMembers,
    Status,
    Variant,
)
from holdfast.inventory.settings import Tx

POOL: LiteralString = """
    select pools.id, name, unit, on_hand, held, buffer, greatest(0, on_hand - held - buffer) as available,
           low_stock_at, coalesce(greatest(0, on_hand - held - buffer) <= low_stock_at, false) as low_stock,
           allow_negative, status::text as status,
           (select count(*) from members where pool_id = pools.id) as member_count, version, inserted_at
      from pools
"""


class Listing(NamedTuple):
    """A member as lists of all of them show it."""

    pool_id: int
    pool: str
    variant_gid: str
    units_per_sale: int
    sku: str | None
    title: str | None


class Named(NamedTuple):
    """Pools by name: the key of every name asked for, and the pools there are by key."""

    keys: Mapping[str, str]
    pools: Mapping[str, Pool]

    def pool(self, name: str) -> Pool | None:
        return self.pools.get(self.keys[name])


async def list_pools(tx: Tx, shop_id: int, command: ListPools) -> list[Pool]:
    """The pools that fit, by id, one more than a page."""
    return await tx.rows(
        Pool,
        POOL
        + """
         where shop_id = %(shop_id)s and id > %(after)s
           and (case when %(status)s::text is null then status <> 'archived' else status::text = %(status)s end)
           and (%(query)s::text is null or strpos(lower(name), lower(%(query)s)) > 0)
           and (not %(low_stock_only)s or greatest(0, on_hand - held - buffer) <= low_stock_at)
         order by id limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "after": command.after(int) or 0,
            "status": command.status,
            "query": command.query,
            "low_stock_only": command.low_stock_only,
            "limit": command.limit + 1,
        },
    )


async def find_pools(tx: Tx, shop_id: int, ids: Collection[int]) -> dict[int, Pool]:
    rows = await tx.rows(
        Pool, POOL + "where shop_id = %(shop_id)s and id = any(%(ids)s)", {"shop_id": shop_id, "ids": list(ids)}
    )
    return {pool.id: pool for pool in rows}


async def find_members(tx: Tx, shop_id: int, pool_ids: Collection[int]) -> dict[int, list[Member]]:
    """The members of those pools, by pool."""
    rows = await tx.tuples(
        """
        select pool_id, variant_gid, units_per_sale, sku, title,
               (select quantity from availability
                 where availability.shop_id = %(shop_id)s and availability.variant_gid = members.variant_gid)
          from members join variants on variants.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and pool_id = any(%(pool_ids)s)
         order by pool_id, units_per_sale, variant_gid
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids)},
    )
    members: dict[int, list[Member]] = {}
    for pool_id, *member in rows:
        members.setdefault(pool_id, []).append(Member(*member))
    return members


async def linked(tx: Tx, shop_id: int, pool_ids: Collection[int]) -> dict[tuple[int, str], MemberFields]:
    """What draws on those pools, by pool and variant."""
    rows = await tx.tuples(
        """
        select pool_id, variant_gid, units_per_sale, sku, title
          from members join variants on variants.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and pool_id = any(%(pool_ids)s)
        """,
        {"shop_id": shop_id, "pool_ids": [*pool_ids]},
    )
    return {(pool_id, gid): MemberFields(gid, units, sku, title) for pool_id, gid, units, sku, title in rows}


def with_members(pool: Pool, members: Sequence[Member]) -> PoolWithMembers:
    return PoolWithMembers(**msgspec.structs.asdict(pool), members=list(members))


async def find_by_name(tx: Tx, shop_id: int, names: Collection[str]) -> Named:
    """The pools of those names that are not archived. What is the same name is for the database to say."""
    keys = dict(await tx.tuples("select name, lower(name) from unnest(%(names)s::text[]) as name", {"names": [*names]}))
    rows = await tx.rows(
        Pool,
        POOL + "where shop_id = %(shop_id)s and status <> 'archived' and lower(name) = any(%(keys)s)",
        {"shop_id": shop_id, "keys": [*keys.values()]},
    )
    own = dict(
        await tx.tuples(
            "select id, lower(name) from pools where shop_id = %(shop_id)s and id = any(%(ids)s)",
            {"shop_id": shop_id, "ids": [pool.id for pool in rows]},
        )
    )
    return Named(keys, {own[pool.id]: pool for pool in rows})


async def is_name_taken(tx: Tx, shop_id: int, name: str, but_for: int = 0) -> bool:
    return await tx.value(
        """
        select exists (select from pools where shop_id = %(shop_id)s and lower(name) = lower(%(name)s)
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
    """Change the fields given; whatever they are, the pool has a new version."""
    await tx.run(
        """
        update pools
           set name = coalesce(new.name, pools.name), unit = coalesce(new.unit, pools.unit),
               buffer = coalesce(new.buffer, pools.buffer),
               low_stock_at = case when %(fields)s::jsonb ? 'low_stock_at' then new.low_stock_at
                                   else pools.low_stock_at end,
               allow_negative = coalesce(new.allow_negative, pools.allow_negative), version = %(version)s
          from jsonb_to_record(%(fields)s) as new (name text, unit text, buffer bigint, low_stock_at bigint,
                                                   allow_negative boolean)
         where shop_id = %(shop_id)s and pools.id = %(id)s
        """,
        {"shop_id": shop_id, "id": id, "version": version, "fields": msgspec.json.encode(fields).decode()},
    )


async def save_pools(tx: Tx, shop_id: int, version: int, pools: Sequence[Mapping[str, Any]]) -> None:
    """Create pools, and change those whose `id` is given; what is null stays as it is."""
    await tx.run(
        """
        with asked as (
            select * from json_to_recordset(%(pools)s) as asked (
                id bigint, name text, unit text, buffer bigint, low_stock_at bigint)),
        changed as (
            update pools
               set unit = coalesce(asked.unit, pools.unit), buffer = coalesce(asked.buffer, pools.buffer),
                   low_stock_at = coalesce(asked.low_stock_at, pools.low_stock_at), version = %(version)s
              from asked where shop_id = %(shop_id)s and pools.id = asked.id)
        insert into pools (shop_id, name, unit, buffer, low_stock_at, version)
        select %(shop_id)s, name, coalesce(unit, 'units'), coalesce(buffer, 0), low_stock_at, %(version)s
          from asked where id is null
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


async def link(tx: Tx, shop_id: int, version: int, links: Sequence[tuple[int, MemberFields]]) -> None:
    """Let variants draw on pools, named by their ids; those that did so already get the new units."""
    await tx.run(
        """
        with fresh as (
            select (link ->> 0)::bigint as pool_id, member.*
              from json_array_elements(%(links)s) as link
             cross join lateral json_to_record(link -> 1) as member (
                   variant_gid text, units_per_sale bigint, sku text, title text)),
        known as (
            insert into variants (shop_id, gid, sku, title, version)
            select %(shop_id)s, variant_gid, max(sku), max(title), %(version)s from fresh group by variant_gid
                on conflict (shop_id, gid) do update
               set sku = coalesce(excluded.sku, variants.sku), title = coalesce(excluded.title, variants.title),
                   version = excluded.version),
        touched as (
            update pools set version = %(version)s
             where shop_id = %(shop_id)s and id in (select pool_id from fresh))
        insert into members (shop_id, pool_id, variant_gid, units_per_sale)
        select %(shop_id)s, pool_id, variant_gid, units_per_sale from fresh
            on conflict (pool_id, variant_gid) do update set units_per_sale = excluded.units_per_sale
        """,
        {"shop_id": shop_id, "version": version, "links": msgspec.json.encode(links).decode()},
    )


async def kits_beyond(tx: Tx, shop_id: int, variant_gids: Collection[str], most: int) -> list[str]:
    """Those variants that draw on more pools than that."""
    rows = await tx.tuples(
        """
        select variant_gid from members where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)
         group by variant_gid having count(*) > %(most)s order by variant_gid
        """,
        {"shop_id": shop_id, "gids": [*variant_gids], "most": most},
    )
    return [gid for (gid,) in rows]


async def list_members(tx: Tx, shop_id: int, after: tuple[int, str], limit: int) -> list[Listing]:
    """Members of pools that are not archived, by pool and variant."""
    return await tx.rows(
        Listing,
        """
        select pool_id, name as pool, variant_gid, units_per_sale, sku, title
          from members
          join pools on pools.id = pool_id and status <> 'archived'
          join variants on variants.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and (pool_id, variant_gid) > (%(pool_id)s, %(gid)s)
         order by pool_id, variant_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "pool_id": after[0], "gid": after[1], "limit": limit},
    )


async def set_units(tx: Tx, shop_id: int, pool_id: int, variant_gid: str, units_per_sale: int) -> None:
    await tx.run(
        """
        update members set units_per_sale = %(units_per_sale)s
         where shop_id = %(shop_id)s and pool_id = %(pool_id)s and variant_gid = %(variant_gid)s
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "variant_gid": variant_gid, "units_per_sale": units_per_sale},
    )


async def unlink(tx: Tx, shop_id: int, pool_id: int, version: int, variant_gids: Sequence[str]) -> None:
    await tx.run(
        """
        with gone as (
            delete from members
             where shop_id = %(shop_id)s and pool_id = %(pool_id)s and variant_gid = any(%(variant_gids)s)
         returning variant_gid)
        update variants set version = %(version)s from gone where shop_id = %(shop_id)s and gid = gone.variant_gid
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "version": version, "variant_gids": list(variant_gids)},
    )


async def effective(tx: Tx, shop_id: int, variant_gids: Collection[str]) -> dict[str, int | None]:
    """How many of each variant can be sold; None where a storefront is not told."""
    rows = await tx.tuples(
        "select variant_gid, quantity from availability where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": list(variant_gids)},
    )
    return {**dict.fromkeys(variant_gids), **dict(rows)}


async def find_variants(tx: Tx, shop_id: int, command: FindVariant) -> list[Variant]:
    rows = await tx.tuples(
        """
        select gid, sku, title,
               (select quantity from availability
                 where availability.shop_id = %(shop_id)s and availability.variant_gid = gid),
               (select coalesce(json_agg(json_build_object('pool_id', pool_id, 'name', name, 'unit', unit,
                                                           'units_per_sale', units_per_sale) order by pool_id), '[]')
                  from members join pools on pools.id = pool_id
                 where members.shop_id = %(shop_id)s and members.variant_gid = gid)
          from variants
         where shop_id = %(shop_id)s
           and (%(gid)s::text is null or gid = %(gid)s)
           and (%(sku)s::text is null or lower(sku) = lower(%(sku)s))
           and (%(text)s::text is null or strpos(lower(coalesce(title, '') || ' ' || coalesce(sku, '')),
                                                 lower(%(text)s)) > 0)
         order by length(title), gid limit 50
        """,
        {"shop_id": shop_id, "gid": command.gid, "sku": command.sku, "text": command.text},
    )
    return [msgspec.convert(dict(zip(Variant.__struct_fields__, row, strict=True)), Variant) for row in rows]
