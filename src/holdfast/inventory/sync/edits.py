"""Edits: quantities that somebody else has set at the platform, handled by the policy of the pool.

adopt      the pool takes the difference over
enforce    the level is set again to what the pool has
flag       the level is left alone until somebody asks for it
A variant that draws on several pools cannot say which of them was counted: for it, adopt is enforce.
"""

from collections.abc import Sequence

import msgspec

from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.book import Draft, Touched, lock, write
from holdfast.inventory.stock.ledger import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import GRACE_SECONDS, Suspect
from holdfast.kit.caller import platform
from holdfast.kit.modes import Batch, Call

SOURCE = "inventory_levels/update"


class _Adopt(Write, kw_only=True):
    """Take an edit over into the pool of a variant."""

    variant_gid: str
    pool_id: int
    delta: int


async def judge(tx: Tx, shop_id: int) -> None:
    """Handle as edits what was not explained within the grace. The levels have just been read."""
    if await _orders_wait(tx, shop_id):
        await _put_off(tx, shop_id)
        return
    await lock(tx, shop_id)  # before any level, as whoever counts orders does
    await levels.lock(tx, shop_id, (), late=True)
    suspects = await _suspects(tx, shop_id)
    adopted: list[Suspect] = []
    flagged: list[Suspect] = []
    for each in suspects:
        policies = {policy for _, _, policy in each.pools}
        if "flag" in policies:
            flagged.append(each)
        elif policies == {"adopt"} and len(each.pools) == 1:
            adopted.append(each)
    await _park(tx, shop_id, flagged)
    await _take_as_explained(tx, shop_id, suspects)
    await _put_off(tx, shop_id)
    if adopted:
        await write(tx, Batch(shop_id, _calls(shop_id, adopted)), SOURCE, _touched, _draft)


def _calls(shop_id: int, suspects: Sequence[Suspect]) -> list[Call[_Adopt]]:
    return [
        Call(
            platform(shop_id),
            _Adopt(
                variant_gid=each.variant_gid,
                pool_id=each.pools[0][0],
                delta=each.amount * each.pools[0][1],
                reason=f"Somebody changed the quantity at the storefront platform by {each.amount:+}.",
            ),
        )
        for each in suspects
    ]


def _touched(command: _Adopt) -> Touched:
    return Touched([command.pool_id])


def _draft(stock: Stock, command: _Adopt) -> Draft:
    return Draft([Posting(stock.pool(command.pool_id).id, "external_edit", command.delta)], command.variant_gid)


async def _orders_wait(tx: Tx, shop_id: int) -> bool:
    """Whether the platform has told of orders that are not counted yet."""
    return await tx.value(
        """
        select exists (select from webhooks where shop_id = %(shop_id)s and handled_at is null and due_at is not null
                                             and (topic like 'orders/%%' or topic like 'refunds/%%'))
        """,
        {"shop_id": shop_id},
    )


async def _put_off(tx: Tx, shop_id: int) -> None:
    await tx.run(
        """
        update levels set suspect_at = clock_timestamp() + %(grace)s * interval '1 second'
         where shop_id = %(shop_id)s and suspect_at <= clock_timestamp()
        """,
        {"shop_id": shop_id, "grace": GRACE_SECONDS},
    )


async def _suspects(tx: Tx, shop_id: int) -> list[Suspect]:
    rows = await tx.tuples(
        """
        with late as (
            select item_gid, sum(available - expected)::bigint as amount
              from levels
             where shop_id = %(shop_id)s and target is not null
               and item_gid in (select item_gid from levels
                                 where shop_id = %(shop_id)s and suspect_at <= clock_timestamp())
             group by item_gid having count(push_id) = 0)
        select item_gid, min(catalog_variants.gid), amount,
               json_agg(json_build_array(pool_id, units_per_sale, policy))
          from late
          join catalog_variants using (item_gid)
          join members on members.shop_id = %(shop_id)s and variant_gid = catalog_variants.gid
          join pools on pools.id = pool_id
         where catalog_variants.shop_id = %(shop_id)s
         group by item_gid, amount order by item_gid limit 100
        """,
        {"shop_id": shop_id},
    )
    return [msgspec.convert(dict(zip(Suspect.__struct_fields__, row, strict=True)), Suspect) for row in rows]


async def _park(tx: Tx, shop_id: int, flagged: Sequence[Suspect]) -> None:
    await tx.run(
        """
        update levels set parked = 'Somebody set it to ' || available || ', where ' || target || ' are in the pool.'
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and target is not null and available <> expected
        """,
        {"shop_id": shop_id, "items": [each.item_gid for each in flagged]},
    )


async def _take_as_explained(tx: Tx, shop_id: int, suspects: Sequence[Suspect]) -> None:
    """What was not explained is an edit, and is dealt with."""
    await tx.run(
        """
        update levels set expected = available, suspect_at = null
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and expected is not null
        """,
        {"shop_id": shop_id, "items": [each.item_gid for each in suspects]},
    )
    await levels.weigh(tx, shop_id, {each.item_gid for each in suspects})
