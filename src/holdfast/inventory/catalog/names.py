"""What people call variants."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.inventory.resources import Reader
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command

ONLY_VARIANT = "Default Title"
"""What the platform calls the variant of a product that has one."""

MOST = 1_000
"""How many variants can be named at once."""


class NameVariants(Command):
    """Asks what people call some variants."""

    gids: Annotated[list[str], Meta(max_length=MOST)]


class VariantName(NamedTuple):
    """The title and SKU of a variant, as far as they are known."""

    title: str | None
    sku: str | None


async def name_variants(reader: Reader, caller: Caller, command: NameVariants) -> dict[str, VariantName]:
    """By id, what the shop calls those of the variants that it has linked, or that the platform has.

    What was said when a variant was linked goes before what the platform says.
    """
    rows = await reader.tuples(
        """
        select asked.gid, coalesce(variants.title, nullif(concat_ws(' · ', nullif(product_title, ''),
                                                                    nullif(nullif(known.title, ''), %(only)s)), '')),
               coalesce(variants.sku, nullif(known.sku, ''))
          from unnest(%(gids)s::text[]) as asked (gid)
          left join variants on variants.shop_id = %(shop_id)s and variants.gid = asked.gid
          left join catalog_variants as known on known.shop_id = %(shop_id)s and known.gid = asked.gid
        """,
        {"shop_id": caller.tenant, "gids": command.gids, "only": ONLY_VARIANT},
    )
    return {gid: VariantName(title, sku) for gid, title, sku in rows}
