"""The lock of a shop, and the stock that a process remembers of it.

A transaction locks a shop before it changes anything of it. Each batch of entries sets a new random stamp, each change
increases the version, and a change of pools or members removes the stamp. If a shop still has the version and the stamp
that this process remembers, nothing was changed, and the remembered stock is current. So processes need not announce
their changes to each other. The stock may be remembered before the transaction commits: if the transaction is rolled
back, the shop does not have the new stamp, and the remembered stock is not used.
"""

import secrets
from collections.abc import Collection
from typing import NamedTuple

from holdfast.inventory.resources import MAX_REMEMBERED_POOLS, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.ledger_rules import LedgerPool, Stock
from holdfast.inventory.stock.shop_versions import lock_shop
from holdfast.inventory.stock.sql import ShopPosition, pools_around


class TouchedRows(NamedTuple):
    """The pools, variants and holds that a call reads or changes."""

    pool_ids: Collection[int] = ()
    variant_gids: Collection[str] = ()
    hold_ids: Collection[int] = ()


def touched_rows(pool_id: int | None, variant_gid: str | None, hold_id: int | None = None) -> TouchedRows:
    """The rows that a call touches by the ids in its command."""
    return TouchedRows(
        [] if pool_id is None else [pool_id],
        [] if variant_gid is None else [variant_gid],
        [] if hold_id is None else [hold_id],
    )


class RememberedStock:
    """The stock of one shop. It is current while the shop has the same version and stamp.

    was_current    whether no other process had changed the shop when the stock was last compared with it. If one had,
                   it may do so often: then the stock is read together with the stamp, by one statement
    """

    def __init__(self, position: ShopPosition, *, was_current: bool) -> None:
        self.stock = Stock(position.version, position.entry_count, position.now, ())
        self.stamp = position.stamp
        self.was_current = was_current
        self.has_endpoints = position.has_endpoints
        self._complete: set[int] = set()
        """The ids of pools that are in the stock together with every pool that shares a variant with them."""

    def __len__(self) -> int:
        return len(self.stock.pools)

    def is_at(self, position: ShopPosition) -> bool:
        """Whether the stock is that of a shop at this position."""
        return self.stamp is not None and (self.stamp, self.stock.version) == (position.stamp, position.version)

    def unknown(self, rows: TouchedRows) -> TouchedRows:
        """The pools and variants that the stock cannot answer for."""
        return TouchedRows(
            [id for id in rows.pool_ids if id not in self._complete],
            [gid for gid in rows.variant_gids if not self._knows(gid)],
        )

    def _knows(self, variant_gid: str) -> bool:
        pools = self.stock.pools_of_variant(variant_gid)
        return bool(pools) and all(pool.id in self._complete for pool, _ in pools)

    def add(self, rows: TouchedRows, pools: Collection[LedgerPool]) -> None:
        """Add what `pools_around` returned for these pools and variants."""
        self.stock.add_pools(pools)
        self._complete.update(id for id in rows.pool_ids if id in self.stock.pools)
        for gid in rows.variant_gids:
            self._complete.update(pool.id for pool, _ in self.stock.pools_of_variant(gid))


async def lock_stock(tx: Tx, shop_id: int, rows: TouchedRows) -> RememberedStock:
    """Lock a shop. Returns its stock, with everything that is touched and all pools that share variants with it.

    While the shop is locked, the stock is not in the memory of the process, so that no other call changes it. Put it
    back with `remember`.
    """
    remembered: RememberedStock | None = tx.resources.stock.pop(shop_id, None)
    position = await _lock_and_compare(tx, shop_id, remembered)
    holds = await sql.find_holds(tx, shop_id, rows.hold_ids) if rows.hold_ids else []
    rows = TouchedRows({*rows.pool_ids, *(id for hold in holds for id in hold.lines)}, rows.variant_gids)
    if position and remembered:
        await _add_unknown(tx, shop_id, remembered, rows)
    else:
        remembered, position = await _read_stock(tx, shop_id, remembered, rows)
    remembered.stock.now = position.now
    remembered.has_endpoints = position.has_endpoints
    remembered.stock.set_holds(holds)
    return remembered


async def _lock_and_compare(tx: Tx, shop_id: int, remembered: RememberedStock | None) -> ShopPosition | None:
    """Lock a shop. Returns its position if the remembered stock is current, else None.

    Stock that another process had changed when it was last compared is left to `_read_stock`.
    """
    if not remembered or not remembered.was_current:
        await lock_shop(tx, shop_id)
        return None
    position = await sql.lock_and_read_position(tx, shop_id)
    remembered.was_current = remembered.is_at(position)
    return position if remembered.was_current else None


async def _add_unknown(tx: Tx, shop_id: int, remembered: RememberedStock, rows: TouchedRows) -> None:
    """Read the touched pools and variants that current stock does not have yet, and add them."""
    unknown = remembered.unknown(rows)
    if unknown.pool_ids or unknown.variant_gids:
        remembered.add(unknown, (await pools_around(tx, shop_id, unknown.pool_ids, unknown.variant_gids))[1])


async def _read_stock(
    tx: Tx, shop_id: int, remembered: RememberedStock | None, rows: TouchedRows
) -> tuple[RememberedStock, ShopPosition]:
    """Read what is touched together with the position of the shop. Remembered stock is used if it is current."""
    position, pools = await pools_around(tx, shop_id, rows.pool_ids, rows.variant_gids)
    if remembered and remembered.is_at(position):
        remembered.was_current = True
    else:
        remembered = RememberedStock(position, was_current=remembered is None)
    remembered.add(rows, pools)
    return remembered, position


def new_stamp() -> int:
    return secrets.randbits(63)


def remember(tx: Tx, shop_id: int, remembered: RememberedStock) -> None:
    """Put the stock of a locked shop into the memory of the process, as the transaction leaves it."""
    if remembered.stamp is not None and len(remembered) <= MAX_REMEMBERED_POOLS:
        tx.resources.stock[shop_id] = remembered
