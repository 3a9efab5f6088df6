"""Syncs the levels of shops when their pools or levels change."""

import asyncio
from collections.abc import Sequence
from functools import partial

from holdfast.inventory.resources import Database, Reader, Steps
from holdfast.inventory.stock.stock_changes import CHANGES
from holdfast.inventory.sync import shop_sync, sql
from holdfast.inventory.sync.levels import CHANNEL
from holdfast.inventory.sync.pushing import PushSizes
from holdfast.inventory.sync.sql import LeasedShop
from holdfast.kit.background import due_work
from holdfast.kit.background.due_work import DueWork
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.running.slots import Slots

MAX_CONCURRENT_SHOPS = 8
"""The most shops that one process syncs at the same time."""

SYNC_TRANSACTIONS = Bound(
    name="Transactions that sync levels",
    service="inventory",
    total=f"{MAX_CONCURRENT_SHOPS} shops at a time",
    tenant="1 shop is synced by one process, and its transactions follow each other",
    address="none: only changes of stock cause it",
    reserved="all of it is for the work of shops",
    stranger="Nothing.",
)

COLLECT_SECONDS = 0.02
"""How long changes are collected, so that one sync handles many."""

MIN_SYNC_INTERVAL_SECONDS = 0.5
"""Seconds from a sync that pushed levels to the next sync of the shop: changes meanwhile are pushed by one call. The
same levels are not pushed again earlier anyway (`pushing.MIN_PUSH_INTERVAL_SECONDS`).
"""

# `jobs.py` uses these statements, and imports no `sql`.
forget_lags = sql.forget_lags
forget_changes = sql.forget_changes


async def run(database: Database) -> None:
    """Sync the levels of shops, until cancelled."""
    await due_work.run(database, SyncWork(database))


class SyncWork(DueWork[LeasedShop]):
    """Syncs the shops that need it. Between two polls, only shops that a notification named are looked at."""

    name = "levels"
    channels = (CHANGES, CHANNEL)
    max_concurrent = MAX_CONCURRENT_SHOPS
    collect_seconds = COLLECT_SECONDS

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._slots = Slots(SYNC_TRANSACTIONS, 1)  # transactions of one shop wait for each other anyway
        self._sizes = PushSizes()
        self._changed_shops: set[int] = set()
        self._resting: set[int] = set()

    def notified(self, payload: str) -> None:
        self._changed_shops.add(int(payload.partition(" ")[0]))

    def excluded_owners(self, rows: Sequence[LeasedShop]) -> Sequence[int]:
        """The shops that are synced now, or have just been."""
        return [*{shop.shop_id for shop in rows} | self._resting]

    async def lease(self, limit: int, excluded_owners: Sequence[int], *, scan_all: bool) -> list[LeasedShop]:
        shop_ids = None if scan_all else self._changed_shops.difference(excluded_owners)
        if shop_ids is not None and not shop_ids:
            return []
        lease = partial(sql.lease_shops, limit=limit, shop_ids=shop_ids, excluded_shops=excluded_owners)
        self._changed_shops -= shop_ids or set()  # a notification from here on adds its shop again
        try:
            shops = await self._database.transact(lease)
        except BaseException:
            self._changed_shops |= shop_ids or set()
            raise
        if len(shops) == limit:
            self._changed_shops |= shop_ids or set()  # more of them may be due
        return shops

    async def renew(self, row: LeasedShop) -> bool:
        return await self._steps(row).transact(partial(shop_sync.renew, shop=row))

    async def next_due(self, reader: Reader, excluded_owners: Sequence[int]) -> float | None:
        return await sql.next_due(reader, excluded_owners)

    async def handle(self, row: LeasedShop) -> int:
        has_pushed = False
        try:
            has_pushed = await shop_sync.sync_shop(self._steps(row), row, self._sizes)
        finally:
            if has_pushed:
                self._resting.add(row.shop_id)
                asyncio.get_running_loop().call_later(MIN_SYNC_INTERVAL_SECONDS, self._rested, row.shop_id)
            else:
                self._changed_shops.add(row.shop_id)  # a change during the sync may have come too late for it
        return 1

    def _rested(self, shop_id: int) -> None:
        self._resting.discard(shop_id)
        self._changed_shops.add(shop_id)
        self.changed.set()

    def _steps(self, shop: LeasedShop) -> Steps:
        return Steps(self._database, shop.shop_id, self._slots)
