"""Statements on members: which variants draw on which pools, and how many of each can be sold."""

from collections.abc import Collection, Sequence
from typing import LiteralString, NamedTuple

import msgspec

from holdfast.inventory.pools.model import FindVariant, Member, MemberFields, Variant
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.containing import Place, search

BEST_FIT = Place("variants", "searched", "length(title), gid")


class Listing(NamedTuple):
    """A member as lists of all of them show it."""

    pool_id: int
    pool: str
    variant_gid: str
    units_per_sale: int
    sku: str | None
    title: str | None


async def find_members(reader: Reader, shop_id: int, pool_ids: Collection[int]) -> dict[int, list[Member]]:
    """The members of those pools, by pool."""
    rows = await reader.tuples(
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


async def linked(reader: Reader, shop_id: int, pool_ids: Collection[int]) -> dict[tuple[int, str], MemberFields]:
    """What draws on those pools, by pool and variant."""
    rows = await reader.tuples(
        """
        select pool_id, variant_gid, units_per_sale, sku, title
          from members join variants on variants.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and pool_id = any(%(pool_ids)s)
        """,
        {"shop_id": shop_id, "pool_ids": [*pool_ids]},
    )
    return {(pool_id, gid): MemberFields(gid, units, sku, title) for pool_id, gid, units, sku, title in rows}


async def link(tx: Tx, shop_id: int, version: int, links: Sequence[tuple[int, MemberFields]]) -> None:
    """Let variants draw on pools, named by their ids; those that did so already get the new units."""
    await tx.run(
        """
        with fresh as (
            select (link ->> 0)::bigint as pool_id, member.*
              from json_array_elements(%(links)s) as link
             cross join lateral json_to_record(link -> 1) as member (
                   variant_gid text, units_per_sale bigint, sku text, title text)),
        saved as (
            insert into variants (shop_id, gid, sku, title, version)
            select %(shop_id)s, variant_gid, max(sku), max(title), %(version)s from fresh group by variant_gid
                on conflict (shop_id, gid) do update
               set sku = coalesce(excluded.sku, variants.sku), title = coalesce(excluded.title, variants.title),
                   version = excluded.version),
        touched as (
            update pools set version = %(version)s
             where shop_id = %(shop_id)s and id = any(array(select pool_id from fresh)))
        insert into members (shop_id, pool_id, variant_gid, units_per_sale)
        select %(shop_id)s, pool_id, variant_gid, units_per_sale from fresh
            on conflict (pool_id, variant_gid) do update set units_per_sale = excluded.units_per_sale
        """,
        {"shop_id": shop_id, "version": version, "links": msgspec.json.encode(links).decode()},
    )


async def kits_beyond(reader: Reader, shop_id: int, variant_gids: Collection[str], most: int) -> list[str]:
    """Those variants that draw on more pools than that."""
    rows = await reader.tuples(
        """
        select variant_gid from members where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)
         group by variant_gid having count(*) > %(most)s order by variant_gid
        """,
        {"shop_id": shop_id, "gids": [*variant_gids], "most": most},
    )
    return [gid for (gid,) in rows]


async def list_members(reader: Reader, shop_id: int, after: tuple[int, str], limit: int) -> list[Listing]:
    """Members of pools that are not archived, by pool and variant."""
    return await reader.rows(
        Listing,
        """
        select pool_id, name as pool, variant_gid, units_per_sale, sku, title
          from members
         cross join lateral (select name from pools where shop_id = %(shop_id)s and id = members.pool_id
                                                      and status <> 'archived' limit 1) as pools
         cross join lateral (select sku, title from variants
                              where shop_id = %(shop_id)s and gid = members.variant_gid limit 1) as variants
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
        with removed as (
            delete from members
             where shop_id = %(shop_id)s and pool_id = %(pool_id)s and variant_gid = any(%(variant_gids)s)
         returning variant_gid)
        update variants set version = %(version)s from removed where shop_id = %(shop_id)s and gid = removed.variant_gid
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "version": version, "variant_gids": list(variant_gids)},
    )


async def effective(reader: Reader, shop_id: int, variant_gids: Collection[str]) -> dict[str, int | None]:
    """How many of each variant can be sold; None where storefronts do not show it."""
    rows = await reader.tuples(
        "select variant_gid, quantity from availability where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": list(variant_gids)},
    )
    return {**dict.fromkeys(variant_gids), **dict(rows)}


async def find_variants(reader: Reader, shop_id: int, command: FindVariant) -> list[Variant]:
    """The variants that are asked for, those that fit best first."""
    # What is not asked for is not in the statement: one plan for all ways to ask would read every variant.
    asked: LiteralString = ""
    if command.gid is not None:
        asked += " and gid = %(gid)s"
    if command.sku is not None:
        asked += " and sku_key = lower(%(sku)s)"

    def listing(source: LiteralString) -> LiteralString:
        return f"""
            select gid, sku, title,
                   (select quantity from availability
                     where availability.shop_id = %(shop_id)s and availability.variant_gid = gid),
                   (select coalesce(json_agg(json_build_object('pool_id', pool_id, 'name', name, 'unit', unit,
                                                              'units_per_sale', units_per_sale) order by pool_id), '[]')
                      from members join pools on pools.id = pool_id
                     where members.shop_id = %(shop_id)s and members.variant_gid = gid)
              from {source} where shop_id = %(shop_id)s {asked}
             order by {BEST_FIT.order} limit %(limit)s
            """

    params = {"shop_id": shop_id, "gid": command.gid, "sku": command.sku, "query": command.text, "limit": 50}
    if command.text is None:
        rows = await reader.tuples(listing(BEST_FIT.table), params)
    else:
        rows = await search(reader.tuples, BEST_FIT, listing, params)
    return [msgspec.convert(dict(zip(Variant.__struct_fields__, row, strict=True)), Variant) for row in rows]
