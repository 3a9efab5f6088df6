"""Members: the variants of pools, how many of each can be sold, and the first stock of a pool.

The first stock is a quantity that the caller names, or what the storefront platform has of the variants.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, LiteralString, NamedTuple

import msgspec

from holdfast.inventory.pools.model import FindVariant, Member, MemberFields, Variant
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import EntryKind, Write
from holdfast.inventory.stock.operations import only_answer
from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store
from holdfast.inventory.stock.substring_search import SearchedTable, search
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, invalid
from holdfast.kit.operations.operation import Batch, Call

BEST_FIT = SearchedTable("variants", "searched", "length(title), gid")
AT_PLATFORM = SearchedTable("catalog_variants", "searched", "product_title, title, gid")

LINKED_CONDITION: LiteralString = """
    and exists (select from variants where variants.shop_id = %(shop_id)s and variants.gid = catalog_variants.gid)
"""
"""SQL condition: a variant of the platform is linked, or was."""

SEARCHED_TABLES: Sequence[tuple[SearchedTable, LiteralString]] = ((BEST_FIT, ""), (AT_PLATFORM, LINKED_CONDITION))
"""The tables in which variants are searched, each with its condition."""

MAX_VARIANTS = 50
"""The most variants in one answer."""


def require_stock_scope(caller: Caller) -> None:
    """Raises `insufficient_scope` for a caller who may configure pools, but not change their stock."""
    if not caller.has("write_inventory"):
        raise INSUFFICIENT_SCOPE(
            "A first quantity needs the scope write_inventory too.", scope="write_pools write_inventory"
        )


async def add_stock(
    tx: Tx, caller: Caller, pool_id: int, kind: EntryKind, quantity: int, source: str, reason: str | None
) -> None:
    """Add a quantity to a pool, as an entry of its ledger. The shop is locked."""

    def draft(stock: Stock, _: Write) -> Draft:
        return Draft([Posting(stock.require_pool(pool_id).id, kind, quantity)])

    batch = Batch(caller.tenant, [Call(caller, Write(reason=reason))])
    only_answer(await apply_and_store(tx, batch, source, lambda _: TouchedRows([pool_id]), draft))


async def platform_quantity(reader: Reader, shop_id: int, pool_id: int, members: Sequence[MemberFields]) -> int:
    """What the platform has of variants that are to be linked, in units of the pool.

    A variant that already draws on the pool adds nothing. Raises `validation_failed` for a variant whose quantity at
    the platform is not known, and for one that draws on another pool: its quantity is that pool's.
    """
    rows = await reader.tuples(
        """
        select variant_gid, units_per_sale,
               (select bool_or(pool_id = %(pool_id)s) from members
                 where members.shop_id = %(shop_id)s and members.variant_gid = member.variant_gid),
               (select sum(greatest(available, 0))::bigint
                  from catalog_variants
                  join levels on levels.shop_id = %(shop_id)s and levels.item_gid = catalog_variants.item_gid
                  join settable_locations as location
                    on location.shop_id = %(shop_id)s and location.gid = levels.location_gid
                 where catalog_variants.shop_id = %(shop_id)s and catalog_variants.gid = variant_gid and tracked)
          from json_to_recordset(%(members)s) as member (variant_gid text, units_per_sale bigint)
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "members": msgspec.json.encode(members).decode()},
    )
    total = 0
    for gid, units, is_member, platform_units in rows:
        if is_member is False:
            raise invalid({"initial": [f"cannot be sum_from_platform: {gid} draws on another pool"]})
        if is_member is None and platform_units is None:
            raise invalid({"initial": [f"cannot be sum_from_platform: what the platform has of {gid} is not known"]})
        total += 0 if is_member else units * platform_units
    return total


class PoolMemberRow(NamedTuple):
    """A member in a list of the members of all pools."""

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
          from members join named_variants as named on named.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and pool_id = any(%(pool_ids)s)
         order by pool_id, units_per_sale, variant_gid
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids)},
    )
    members: dict[int, list[Member]] = {}
    for pool_id, *member in rows:
        members.setdefault(pool_id, []).append(Member(*member))
    return members


async def find_links(reader: Reader, shop_id: int, pool_ids: Collection[int]) -> dict[tuple[int, str], MemberFields]:
    """The members of those pools, by pool and variant."""
    rows = await reader.tuples(
        """
        select pool_id, variant_gid, units_per_sale, sku, title
          from members join named_variants as named on named.shop_id = members.shop_id and gid = variant_gid
         where members.shop_id = %(shop_id)s and pool_id = any(%(pool_ids)s)
        """,
        {"shop_id": shop_id, "pool_ids": [*pool_ids]},
    )
    return {(pool_id, gid): MemberFields(gid, units, sku, title) for pool_id, gid, units, sku, title in rows}


async def insert_members(tx: Tx, shop_id: int, version: int, links: Sequence[tuple[int, MemberFields]]) -> None:
    """Let variants draw on pools, named by their ids. Existing members get the new units."""
    await tx.run(
        """
        with new_member as (
            select (link ->> 0)::bigint as pool_id, member.*
              from json_array_elements(%(links)s) as link
             cross join lateral json_to_record(link -> 1) as member (
                   variant_gid text, units_per_sale bigint, sku text, title text)),
        saved_variant as (
            insert into variants (shop_id, gid, sku, title, version)
            select %(shop_id)s, variant_gid, max(sku), max(title), %(version)s from new_member group by variant_gid
                on conflict (shop_id, gid) do update
               set sku = coalesce(excluded.sku, variants.sku), title = coalesce(excluded.title, variants.title),
                   version = excluded.version),
        changed_pool as (
            update pools set version = %(version)s
             where shop_id = %(shop_id)s and id = any(array(select pool_id from new_member)))
        insert into members (shop_id, pool_id, variant_gid, units_per_sale)
        select %(shop_id)s, pool_id, variant_gid, units_per_sale from new_member
            on conflict (pool_id, variant_gid) do update set units_per_sale = excluded.units_per_sale
        """,
        {"shop_id": shop_id, "version": version, "links": msgspec.json.encode(links).decode()},
    )


async def find_oversized_kits(reader: Reader, shop_id: int, variant_gids: Collection[str], max_pools: int) -> list[str]:
    """The variants of a list that draw on more than `max_pools` pools."""
    rows = await reader.tuples(
        """
        select variant_gid from members where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)
         group by variant_gid having count(*) > %(max_count)s order by variant_gid
        """,
        {"shop_id": shop_id, "gids": [*variant_gids], "max_count": max_pools},
    )
    return [gid for (gid,) in rows]


async def list_members(reader: Reader, shop_id: int, after: tuple[int, str], limit: int) -> list[PoolMemberRow]:
    """Members of pools that are not archived, by pool and variant."""
    return await reader.rows(
        PoolMemberRow,
        """
        select pool_id, name as pool, variant_gid, units_per_sale, sku, title
          from members
         cross join lateral (select name from pools where shop_id = %(shop_id)s and id = members.pool_id
                                                      and status <> 'archived' limit 1) as pools
         cross join lateral (select sku, title from named_variants
                              where shop_id = %(shop_id)s and gid = members.variant_gid limit 1) as named
         where members.shop_id = %(shop_id)s and (pool_id, variant_gid) > (%(pool_id)s, %(gid)s)
         order by pool_id, variant_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "pool_id": after[0], "gid": after[1], "limit": limit},
    )


async def find_by_sku(reader: Reader, shop_id: int, skus: Collection[str]) -> dict[str, Sequence[str]]:
    """The variants that have each SKU, as linked or at the platform: two at most."""
    rows = await reader.tuples(
        """
        select sku, array((select gid from variants
                            where shop_id = %(shop_id)s and sku_key = lower(sku.sku) limit 2)
                          union
                          (select gid from catalog_variants
                            where shop_id = %(shop_id)s and sku_key = lower(sku.sku) limit 2)
                          limit 2)
          from unnest(%(skus)s::text[]) as sku (sku)
        """,
        {"shop_id": shop_id, "skus": [*skus]},
    )
    return dict(rows)


async def find_labels(
    reader: Reader, shop_id: int, variant_gids: Collection[str]
) -> dict[str, tuple[str | None, str | None]]:
    """The SKU and the title of each variant that is linked, or was."""
    rows = await reader.tuples(
        """
        select named.gid, named.sku, named.title
          from unnest(%(gids)s::text[]) as requested (gid)
         cross join lateral (select gid, sku, title from named_variants
                              where shop_id = %(shop_id)s and gid = requested.gid limit 1) as named
        """,
        {"shop_id": shop_id, "gids": [*variant_gids]},
    )
    return {gid: (sku, title) for gid, sku, title in rows}


async def set_units(tx: Tx, shop_id: int, pool_id: int, variant_gid: str, units_per_sale: int) -> None:
    await tx.run(
        """
        update members set units_per_sale = %(units_per_sale)s
         where shop_id = %(shop_id)s and pool_id = %(pool_id)s and variant_gid = %(variant_gid)s
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "variant_gid": variant_gid, "units_per_sale": units_per_sale},
    )


async def delete_members(tx: Tx, shop_id: int, pool_id: int, version: int, variant_gids: Sequence[str]) -> None:
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


async def effective_quantities(reader: Reader, shop_id: int, variant_gids: Collection[str]) -> dict[str, int | None]:
    """How many of each variant can be sold; None where storefronts do not show it."""
    rows = await reader.tuples(
        "select variant_gid, quantity from availability where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": list(variant_gids)},
    )
    return {**dict.fromkeys(variant_gids), **dict(rows)}


async def find_variants(reader: Reader, shop_id: int, command: FindVariant) -> list[Variant]:
    """The variants that match, the best match first. The platform's names count too."""
    params = {"shop_id": shop_id, "gid": command.gid, "sku": command.sku, "limit": MAX_VARIANTS}
    rows: list[Sequence[Any]] = []
    for searched, named_condition in SEARCHED_TABLES:
        listing = partial(_listing, searched, named_condition)
        if command.text is not None:
            for text in _spellings(command.text):
                rows += await search(reader.tuples, searched, listing, {**params, "query": text})
        elif command.sku is not None:
            rows += await reader.tuples(listing(searched.table, " and sku_key = lower(%(sku)s)"), params)
        elif searched is BEST_FIT:
            rows += await reader.tuples(listing(searched.table, " and gid = %(gid)s"), params)
    fields_by_gid = {row[0]: dict(zip(Variant.__struct_fields__, row, strict=True)) for row in rows}
    variants = [msgspec.convert(fields, Variant) for fields in fields_by_gid.values()]
    return sorted(variants, key=lambda variant: (variant.title is None, len(variant.title or ""), variant.gid))[
        :MAX_VARIANTS
    ]


def _spellings(text: str) -> Sequence[str]:
    """The spellings to search for: the text itself, and as the name `product · variant` is stored."""
    return [*dict.fromkeys((text, text.replace(" · ", " ")))]


def _listing(
    searched: SearchedTable, named_condition: LiteralString, source: LiteralString, condition: LiteralString = ""
) -> LiteralString:
    # An unused condition is not in the statement: one plan for all conditions would read every variant.
    return f"""
        select gid, member_sku, member_title,
               (select quantity from availability
                 where availability.shop_id = %(shop_id)s and availability.variant_gid = gid),
               (select coalesce(json_agg(json_build_object('pool_id', pool_id, 'name', name, 'unit', unit,
                                                          'units_per_sale', units_per_sale) order by pool_id), '[]')
                  from members join pools on pools.id = pool_id
                 where members.shop_id = %(shop_id)s and members.variant_gid = gid)
          from {source}
         cross join lateral (select named.sku as member_sku, named.title as member_title from named_variants as named
                              where named.shop_id = %(shop_id)s and named.gid = {searched.table}.gid limit 1) as named
         where shop_id = %(shop_id)s {condition} {named_condition}
         order by {searched.order} limit %(limit)s
        """
