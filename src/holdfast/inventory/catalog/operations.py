"""Operations on the catalog of a shop."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.model import Filled
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command


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


async def search(reader: Reader, caller: Caller, command: SearchVariants) -> Hits:
    """Search the shop's variants at the platform, linked to a pool or not."""
    return Hits(
        await reader.rows(
            Hit,
            """
            select gid as variant_gid, product_title, title, sku, tracked,
                   (select coalesce(sum(available), 0)::bigint from levels
                     where levels.shop_id = %(shop_id)s and levels.item_gid = catalog_variants.item_gid) as available,
                   array(select pool_id from members where members.shop_id = %(shop_id)s and variant_gid = gid
                          order by pool_id) as pool_ids
              from catalog_variants
             where shop_id = %(shop_id)s
               and (%(query)s::text is null
                    or strpos(lower(product_title || ' ' || title || ' ' || coalesce(sku, '')), lower(%(query)s)) > 0)
               and (not %(unlinked_only)s
                    or not exists (select from members where members.shop_id = %(shop_id)s and variant_gid = gid))
             order by product_title, title, gid limit %(limit)s
            """,
            {
                "shop_id": caller.tenant,
                "query": command.query,
                "unlinked_only": command.unlinked_only,
                "limit": command.limit,
            },
        )
    )
