"""Operations on the catalog of a shop."""

from collections.abc import Collection
from functools import partial
from typing import Annotated, LiteralString

from msgspec import Meta, Struct

from holdfast.inventory.catalog.model import NameVariants, VariantName
from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.model import Filled
from holdfast.inventory.stock.substring_search import SearchedTable, search
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command

BY_TITLE = SearchedTable("catalog_variants", "searched", "product_title, title, gid")


class SearchVariants(Command):
    query: Annotated[Filled | None, Meta(description="Part of a title or SKU.")] = None
    unlinked_only: Annotated[bool, Meta(description="Only those of no pool.")] = False
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Hit(Struct):
    """A variant of the shop at the platform."""

    variant_gid: str
    product_title: str
    title: str
    sku: str | None
    tracked: Annotated[bool, Meta(description="Whether the platform counts it.")]
    available: Annotated[int, Meta(description="At the platform, over all locations.")]
    pool_ids: list[int]


class Hits(Struct):
    """Variants found, by title."""

    variants: list[Hit]


async def search_variants(reader: Reader, caller: Caller, command: SearchVariants) -> Hits:
    """Search the shop's variants at the platform, linked to a pool or not."""
    condition: LiteralString = ""
    if command.unlinked_only:
        condition = " and not exists (select from members where members.shop_id = %(shop_id)s and variant_gid = gid)"

    def listing(source: LiteralString) -> LiteralString:
        return f"""
            select gid as variant_gid, product_title, title, sku, tracked,
                   (select coalesce(sum(available), 0)::bigint from levels
                     where levels.shop_id = %(shop_id)s and levels.item_gid = catalog_variants.item_gid) as available,
                   array(select pool_id from members where members.shop_id = %(shop_id)s and variant_gid = gid
                          order by pool_id) as pool_ids
              from {source} where shop_id = %(shop_id)s {condition}
             order by {BY_TITLE.order} limit %(limit)s
            """

    read = partial(reader.rows, Hit)
    params = {"shop_id": caller.tenant, "query": command.query, "limit": command.limit}
    if command.query is None:
        return Hits(await read(listing(BY_TITLE.table), params))
    return Hits(await search(read, BY_TITLE, listing, params))


async def name_variants(reader: Reader, caller: Caller, command: NameVariants) -> dict[str, VariantName]:
    """The names of variants that the shop has linked, or that the platform has, by id."""
    return await find_names(reader, caller.tenant, command.gids)


async def find_names(reader: Reader, shop_id: int, gids: Collection[str]) -> dict[str, VariantName]:
    """The names of variants, by id. A name given with a link wins over the platform's name."""
    rows = await reader.tuples(
        """
        select request.gid, coalesce(variants.title, shown_title(product_title, catalog.title)),
               coalesce(variants.sku, nullif(catalog.sku, ''))
          from unnest(%(gids)s::text[]) as request (gid)
          left join variants on variants.shop_id = %(shop_id)s and variants.gid = request.gid
          left join catalog_variants as catalog on catalog.shop_id = %(shop_id)s and catalog.gid = request.gid
        """,
        {"shop_id": shop_id, "gids": [*gids]},
    )
    return {gid: VariantName(title, sku) for gid, title, sku in rows}
