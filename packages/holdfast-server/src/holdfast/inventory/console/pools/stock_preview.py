"""What a change of stock would do, as pages say it before it is made: to the pools, and to what the shop shows."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.inventory.pools.model import PoolWithMembers
from holdfast.inventory.stock.model import PoolStock, StockChange

MAX_NUMBERS = 6
"""The most variants whose numbers a preview names."""


class PoolPreview(Struct):
    """A pool before and after a change."""

    name: str
    unit: str
    before: int
    after: int
    is_low: bool

    @property
    def delta(self) -> int:
        return self.after - self.before


class StockPreview(Struct):
    """What a change would do.

    pools           the pools that it changes; a count that says what is there already changes none
    numbers         what can then be sold of the variants of the pool, the first of them
    other_numbers   of how many more variants something can be sold
    is_active       whether the pool is active: the shop shows no numbers of another one
    """

    pools: Sequence[PoolPreview]
    numbers: Sequence[int]
    other_numbers: int
    is_active: bool


def preview_of(change: StockChange, pool: PoolWithMembers) -> StockPreview:
    """The preview of a change, from what its dry run answered."""
    stock_by_id: Mapping[int, PoolStock] = {stock.id: stock for stock in change.pools}
    pools = [
        PoolPreview(
            (stock := stock_by_id[entry.pool_id]).name,
            stock.unit,
            entry.balance_after - entry.delta,
            entry.balance_after,
            stock.low_stock,
        )
        for entry in change.entries
        if entry.delta
    ]
    after_by_gid = {affected.variant_gid: affected.after for affected in change.affected or ()}
    numbers = [
        after_by_gid.get(member.variant_gid, member.effective)
        for member in pool.members
        if member.effective is not None
    ]
    # If a change concerns too many variants for the list of the dry run, it is told without their numbers.
    known_numbers = [] if change.affected is None else numbers
    return StockPreview(pools, known_numbers[:MAX_NUMBERS], len(known_numbers[MAX_NUMBERS:]), pool.status == "active")
