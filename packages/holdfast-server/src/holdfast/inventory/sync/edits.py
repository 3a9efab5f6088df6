"""Edits: quantities that another program or a merchant has set at the platform. The policy of the pool handles them.

adopt      the pool takes the difference over
enforce    the level is set again to what the pool has
flag       the level stays as it is until an agent or a merchant calls `resync`
The edit of a variant that draws on several pools does not say which of them was counted: for it, adopt is enforce.
"""

from collections.abc import Collection, Sequence

import msgspec

from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.partner_webhooks.model import WaitingWebhook
from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import CHANGED_AT_PLATFORM, GRACE_SECONDS, PUSH_STREAK, UnexplainedDifference
from holdfast.inventory.webhooks.messages import StockDrift, store_drifts
from holdfast.kit.contract.caller import platform
from holdfast.kit.operations.operation import Batch, Call

SOURCE = "inventory_levels/update"

MAX_JUDGED_ITEMS = 100
"""The most items whose differences one transaction handles."""


class _Adopt(Write, kw_only=True):
    """Add an edit to the pool of a variant."""

    variant_gid: str
    pool_id: int
    delta: int


async def handle_edits(tx: Tx, shop_id: int, item_gids: Collection[str]) -> list[WaitingWebhook]:
    """Handle the differences of items that were not explained within the grace as edits.

    All levels of these items have just been read, and are locked. Other items stay due: what is stored of them may be
    old. Returns the webhooks that it waits for instead: orders that are not counted yet.
    """
    if waits_for := await inbox.list_waiting_order_webhooks(tx, shop_id):
        await _postpone(tx, shop_id, item_gids)
        return waits_for
    overdue_items = await _find_overdue_items(tx, shop_id, item_gids)
    differences = await _find_unexplained(tx, shop_id, overdue_items)
    adopted: list[UnexplainedDifference] = []
    flagged: list[UnexplainedDifference] = []
    for difference in differences:
        policies = {policy for _, _, policy in difference.pools}
        if "flag" in policies:
            flagged.append(difference)
        elif policies == {"adopt"} and len(difference.pools) == 1:
            adopted.append(difference)
    await store_drifts(tx, shop_id, _drifts(differences))
    await _flag_levels(tx, shop_id, flagged)
    await _mark_explained(tx, shop_id, overdue_items, differences)
    await _postpone(tx, shop_id, item_gids)
    if adopted:
        await apply_and_store(tx, Batch(shop_id, _calls(shop_id, adopted)), SOURCE, _touched_rows, _draft)
    return []


def _drifts(differences: Sequence[UnexplainedDifference]) -> Sequence[StockDrift]:
    """The differences of each pool. A variant that draws on several pools is in each."""
    drifts: dict[int, StockDrift] = {}
    for difference in differences:
        for pool_id, _, policy in difference.pools:
            drift = drifts.setdefault(pool_id, StockDrift(pool_id, policy, {}))
            drift.variants[difference.variant_gid] = difference.amount
    return [drifts[pool_id] for pool_id in sorted(drifts)]


def _calls(shop_id: int, differences: Sequence[UnexplainedDifference]) -> list[Call[_Adopt]]:
    return [
        Call(
            platform(shop_id),
            _Adopt(
                variant_gid=difference.variant_gid,
                pool_id=difference.pools[0][0],
                delta=difference.amount * difference.pools[0][1],
                reason=f"A merchant or another app changed the quantity at the platform by {difference.amount:+}.",
            ),
        )
        for difference in differences
    ]


def _touched_rows(command: _Adopt) -> TouchedRows:
    return TouchedRows([command.pool_id])


def _draft(stock: Stock, command: _Adopt) -> Draft:
    return Draft([Posting(stock.require_pool(command.pool_id).id, "external_edit", command.delta)], command.variant_gid)


async def _postpone(tx: Tx, shop_id: int, item_gids: Collection[str]) -> None:
    await tx.run(
        """
        update levels set suspect_at = clock_timestamp() + %(grace)s * interval '1 second'
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and suspect_at <= clock_timestamp()
        """,
        {"shop_id": shop_id, "items": [*item_gids], "grace": GRACE_SECONDS},
    )


async def _find_overdue_items(tx: Tx, shop_id: int, item_gids: Collection[str]) -> list[str]:
    """The items of a list whose grace is over, and that no call changes now; at most `MAX_JUDGED_ITEMS`."""
    rows = await tx.tuples(
        """
        select item_gid from levels where shop_id = %(shop_id)s and item_gid = any(%(items)s)
         group by item_gid having bool_or(suspect_at <= clock_timestamp()) and count(push_id) = 0
         order by item_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "items": [*item_gids], "limit": MAX_JUDGED_ITEMS},
    )
    return [item for (item,) in rows]


async def _find_unexplained(tx: Tx, shop_id: int, overdue_items: Sequence[str]) -> list[UnexplainedDifference]:
    """The differences of items at the levels that are set from pools."""
    rows = await tx.tuples(
        """
        with unexplained_item as (
            select item_gid, sum(available - expected)::bigint as amount
              from levels
             where shop_id = %(shop_id)s and target is not null and item_gid = any(%(items)s)
             group by item_gid having sum(available - expected) <> 0)
        select item_gid, min(catalog_variants.gid), amount,
               json_agg(json_build_array(pool_id, units_per_sale, policy))
          from unexplained_item
          join catalog_variants using (item_gid)
          join members on members.shop_id = %(shop_id)s and variant_gid = catalog_variants.gid
          join pools on pools.id = pool_id
         where catalog_variants.shop_id = %(shop_id)s
         group by item_gid, amount order by item_gid
        """,
        {"shop_id": shop_id, "items": [*overdue_items]},
    )
    return [
        msgspec.convert(dict(zip(UnexplainedDifference.__struct_fields__, row, strict=True)), UnexplainedDifference)
        for row in rows
    ]


async def _flag_levels(tx: Tx, shop_id: int, flagged: Sequence[UnexplainedDifference]) -> None:
    await tx.run(
        """
        update levels
           set parked = %(changed)s::text || available || ' at the platform, where ' || target || ' are in the pool.'
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and target is not null and available <> expected
        """,
        {
            "shop_id": shop_id,
            "items": [difference.item_gid for difference in flagged],
            "changed": CHANGED_AT_PLATFORM,
        },
    )


async def _mark_explained(
    tx: Tx, shop_id: int, overdue_items: Sequence[str], differences: Sequence[UnexplainedDifference]
) -> None:
    """Mark the differences of overdue items as explained. If a level is set again, no pool is the cause.

    At a level that is left alone, merchants are not told of the difference: it may be a sale that is told later.
    """
    await levels.end_changes(tx, shop_id, overdue_items)
    await tx.run(
        f"""
        update levels
           set expected = available, suspect_at = null,
               based_at = case when target is null and not paused and available <> expected
                               then greatest(based_at, seen_at) else based_at end,
               {PUSH_STREAK} = greatest({PUSH_STREAK}, case when item_gid = any(%(different_items)s) then 1 else 0 end)
         where shop_id = %(shop_id)s and item_gid = any(%(items)s) and expected is not null
        """,
        {
            "shop_id": shop_id,
            "items": [*overdue_items],
            "different_items": [difference.item_gid for difference in differences],
        },
    )
