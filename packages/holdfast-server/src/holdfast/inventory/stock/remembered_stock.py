"""Remembers the stock of shops as this process left it, so that the next change need not read it again.

A shop is locked before anything of it is changed. Each batch of entries gives it another random stamp, each change
another version, and a change of pools or members removes the stamp. So a shop that still has the version and the stamp
that this process remembers was changed by nobody since, and its pools are as remembered. Nothing has to be announced,
and it does not matter whether the transaction that is remembered was committed: only then the shop has its stamp.
"""

import secrets
from collections.abc import Collection
from typing import NamedTuple

from holdfast.inventory.resources import MAX_REMEMBERED_POOLS, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.connected_pools import ShopPosition, pools_around
from holdfast.inventory.stock.ledger_rules import Stock, StockPool


class TouchedRows(NamedTuple):
    """The pools, variants and holds that a call reads or changes."""

    pool_ids: Collection[int] = ()
    variant_gids: Collection[str] = ()
    hold_ids: Collection[int] = ()


class RememberedStock:
    """The stock of one shop, for as long as the shop has its version and this stamp.

    was_right    whether it was right when it was last compared. If not, another process may change the shop by turns
                 with this one, and the stock is read together with the stamp
    """

    def __init__(self, position: ShopPosition, *, was_right: bool) -> None:
        self.stock = Stock(position.version, position.entry_count, position.now, ())
        self.stamp = position.stamp
        self.was_right = was_right
        self._complete: set[int] = set()
        """The pools of which each pool that shares a variant with them is in the stock."""

    def __len__(self) -> int:
        return len(self.stock.pools)

    def is_of(self, position: ShopPosition) -> bool:
        """Whether the stock is that of a shop at this position."""
        return self.stamp is not None and (self.stamp, self.stock.version) == (position.stamp, position.version)

    def unknown(self, touched: TouchedRows) -> TouchedRows:
        """Return the pools and variants that the stock cannot answer for."""
        return TouchedRows(
            [id for id in touched.pool_ids if id not in self._complete],
            [gid for gid in touched.variant_gids if not self._knows(gid)],
        )

    def _knows(self, variant_gid: str) -> bool:
        pools = self.stock.pools_of_variant(variant_gid)
        return bool(pools) and all(pool.id in self._complete for pool, _ in pools)

    def add(self, touched: TouchedRows, pools: Collection[StockPool]) -> None:
        """Add what `pools_around` returned for these pools and variants."""
        self.stock.add_pools(pools)
        self._complete.update(id for id in touched.pool_ids if id in self.stock.pools)
        for gid in touched.variant_gids:
            self._complete.update(pool.id for pool, _ in self.stock.pools_of_variant(gid))


async def lock_stock(tx: Tx, shop_id: int, touched: TouchedRows) -> RememberedStock:
    """Lock a shop, and return its stock with everything that is touched, and all pools that share variants with it.

    Nobody else has it: give it back with `remember`.
    """
    remembered: RememberedStock | None = tx.resources.stock.pop(shop_id, None)
    position = None
    if remembered and remembered.was_right:
        position = await sql.lock_and_locate(tx, shop_id)
        remembered.was_right = remembered.is_of(position)
    else:
        await sql.lock_shop(tx, shop_id)
    holds = await sql.find_holds(tx, shop_id, touched.hold_ids) if touched.hold_ids else []
    touched = TouchedRows({*touched.pool_ids, *(id for hold in holds for id in hold.lines)}, touched.variant_gids)
    if position and remembered and remembered.was_right:
        unknown = remembered.unknown(touched)
        if unknown.pool_ids or unknown.variant_gids:
            remembered.add(unknown, (await pools_around(tx, shop_id, unknown.pool_ids, unknown.variant_gids))[1])
    else:
        position, pools = await pools_around(tx, shop_id, touched.pool_ids, touched.variant_gids)
        if remembered and remembered.is_of(position):
            remembered.was_right = True
        else:
            remembered = RememberedStock(position, was_right=remembered is None)
        remembered.add(touched, pools)
    remembered.stock.now = position.now
    remembered.stock.set_holds(holds)
    return remembered


def new_stamp() -> int:
    return secrets.randbits(63)


def remember(tx: Tx, shop_id: int, remembered: RememberedStock) -> None:
    """Remember the stock of a shop, as it is after the last statement of a transaction that has locked the shop."""
    if remembered.stamp is not None and len(remembered) <= MAX_REMEMBERED_POOLS:
        tx.resources.stock[shop_id] = remembered
