"""The first stock of a pool: a quantity that the caller names, or what the storefront platform has of its variants."""

from collections.abc import Sequence

import msgspec

from holdfast.inventory.pools.model import MemberFields
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import EntryKind, Write
from holdfast.inventory.stock.operations import only_answer
from holdfast.inventory.stock.stock_changes import Draft, TouchedRows, write
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, invalid
from holdfast.kit.running.run_modes import Batch, Call


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
        return Draft([Posting(stock.pool(pool_id).id, kind, quantity)])

    batch = Batch(caller.tenant, [Call(caller, Write(reason=reason))])
    only_answer(await write(tx, batch, source, lambda _: TouchedRows([pool_id]), draft))


async def platform_quantity(reader: Reader, shop_id: int, pool_id: int, members: Sequence[MemberFields]) -> int:
    """Return what the platform has of variants that are to be linked, in units of the pool.

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
                  join settable_locations as place
                    on place.shop_id = %(shop_id)s and place.gid = levels.location_gid
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
