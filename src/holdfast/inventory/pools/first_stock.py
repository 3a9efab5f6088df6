"""The first stock of a pool: what somebody says is there, or what the storefront platform has of its variants."""

from collections.abc import Sequence

import msgspec

from holdfast.inventory.pools.model import MemberFields
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.book import Draft, Touched, write
from holdfast.inventory.stock.ledger import Posting, Stock
from holdfast.inventory.stock.model import EntryKind, Write
from holdfast.inventory.stock.operations import only
from holdfast.kit.caller import Caller
from holdfast.kit.modes import Batch, Call
from holdfast.kit.problems import INSUFFICIENT_SCOPE, invalid


def expect_scope(caller: Caller) -> None:
    """Raises `insufficient_scope` for a caller who may configure pools, but not change their stock."""
    if not caller.has("write_inventory"):
        raise INSUFFICIENT_SCOPE(
            "A first quantity needs the scope write_inventory too.", scope="write_pools write_inventory"
        )


async def fill(
    tx: Tx, caller: Caller, pool_id: int, kind: EntryKind, quantity: int, source: str, reason: str | None
) -> None:
    """Add a quantity to a pool, as an entry of its ledger. The shop is locked."""

    def draft(stock: Stock, _: Write) -> Draft:
        return Draft([Posting(stock.pool(pool_id).id, kind, quantity)])

    batch = Batch(caller.tenant, [Call(caller, Write(reason=reason))])
    only(await write(tx, batch, source, lambda _: Touched([pool_id]), draft))


async def at_platform(reader: Reader, shop_id: int, pool_id: int, members: Sequence[MemberFields]) -> int:
    """What the platform has of variants that are to be linked, in units of the pool.

    A variant that draws on the pool already adds nothing. Raises `validation_failed` for one whose quantity at the
    platform is not known, and for one that draws on another pool: its quantity says what that pool has.
    """
    rows = await reader.tuples(
        """
        select variant_gid, units_per_sale,
               (select bool_or(pool_id = %(pool_id)s) from members
                 where members.shop_id = %(shop_id)s and members.variant_gid = given.variant_gid),
               (select sum(greatest(available, 0))::bigint
                  from catalog_variants
                  join levels on levels.shop_id = %(shop_id)s and levels.item_gid = catalog_variants.item_gid
                  left join catalogs on catalogs.shop_id = %(shop_id)s
                  left join locations on locations.shop_id = %(shop_id)s and locations.gid = levels.location_gid
                 where catalog_variants.shop_id = %(shop_id)s and catalog_variants.gid = variant_gid and tracked
                   and coalesce(locations.active, true)
                   and (coalesce(rule, 'all') = 'all' or share_from < share_to))
          from json_to_recordset(%(members)s) as given (variant_gid text, units_per_sale bigint)
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "members": msgspec.json.encode(members).decode()},
    )
    total = 0
    for gid, units, here, there in rows:
        if here is False:
            raise invalid({"initial": [f"cannot be sum_from_platform: {gid} draws on another pool"]})
        if here is None and there is None:
            raise invalid({"initial": [f"cannot be sum_from_platform: what the platform has of {gid} is not known"]})
        total += 0 if here else units * there
    return total
