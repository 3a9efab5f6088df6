"""The first page of the console: the shop's pools, with figures of each, and those that run low."""

import asyncio
from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ListLowStock, LowStockList
from holdfast.inventory.console.frame import HOME, Console, merchant, picture_values, shop_of
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import GetPool, ListPools, Pool, PoolList
from holdfast.inventory.pools.pool_figures import GetPoolFigures, PoolFigures
from holdfast.inventory.settings import Settings
from holdfast.inventory.stock.model import MAX_QUANTITY
from holdfast.inventory.sync.model import ListUnsyncedPools, UnsyncedPools
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import FormRefusal, try_form

PAGE_SIZE = 50

MIN_SEARCHED_POOLS = 8
"""The pools from which on the page has a search and filters."""

FILTERS = {
    "": translatable("All pools"),
    "low": translatable("Low stock"),
    "unsynced": translatable("Not in sync"),
    "archived": translatable("Archived pools"),
}
"""The pools that the list can be limited to, by the value of the parameter `status`."""

LOW_STOCK = "/console/low-stock"
LOW_STOCK_PAGE_SIZE = 50

MAX_COMPARED_POOLS = 200
"""The most pools of a shop for which the page says which one is closest to its limit."""

LOW_STOCK_LABELS = {
    "threshold": translatable("Stock at most"),
    "days_of_cover": translatable("Or days left at most"),
}


LOW_STOCK_NUMBERS = {"threshold": NumberField(0, MAX_QUANTITY, 30), "days_of_cover": NumberField(1, 365, 14)}


class PoolsPage:
    """Answers requests for the list of pools."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._list, self._pool = console.run["list_pools"], console.run["get_pool"]
        self._is_connected = console.run["is_shop_connected"]
        self._figures, self._list_unsynced = console.run["get_pool_figures"], console.run["list_unsynced_pools"]

    def routes(self) -> list[Route]:
        return [self._console.route(HOME, "pools", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the shop's pools; archived pools have a list of their own.

        A page has the oldest first. Those that need the merchant come before the others of the page.
        """
        query = read_query(request.query)
        pool_filter = query.get("status", "") if query.get("status") in FILTERS else ""
        search = query.get("q", "").strip()
        pools, cursor = await self._pools(session, pool_filter, search, query.get("cursor") or None)
        command = GetPoolFigures(pool_ids=[pool.id for pool in pools])
        figures: Mapping[int, PoolFigures]
        figures, is_connected = await asyncio.gather(
            self._figures(merchant(session), command), self._is_connected(merchant(session), GetConnection())
        )
        return self._console.page(
            session,
            request,
            "pools/pools.html",
            pools=sorted(pools, key=lambda pool: _urgency(pool, figures[pool.id])),
            figures=figures,
            after=cursor,
            pool_filter=pool_filter,
            values={"q": search, "status": pool_filter},
            filters=FILTERS,
            is_searchable=len(pools) >= MIN_SEARCHED_POOLS or any((cursor, search, pool_filter, "cursor" in query)),
            is_connected=is_connected,
            shop=shop_of(session) if self._settings.client_id else "",
            scripts=["live.js"],
            **picture_values(self._settings),
        )

    async def _pools(
        self, session: Session, pool_filter: str, search: str, cursor: str | None
    ) -> tuple[Sequence[Pool], str | None]:
        """A page of the pools of a filter whose names contain a text, and the cursor of the next page."""
        options = {"limit": PAGE_SIZE, "cursor": cursor, "query": search or None}
        if pool_filter == "unsynced":
            unsynced: UnsyncedPools = await self._list_unsynced(merchant(session), check(ListUnsyncedPools, options))
            commands = [GetPool(pool_id=id, include_members=False) for id in unsynced.pool_ids]
            pools = await asyncio.gather(*(self._pool(merchant(session), command) for command in commands))
            return pools, unsynced.next_cursor
        options |= {"status": "archived" if pool_filter == "archived" else None, "low_stock_only": pool_filter == "low"}
        pool_list: PoolList = await self._list(merchant(session), check(ListPools, options))
        return pool_list.pools, pool_list.next_cursor


def _urgency(pool: Pool, figure: PoolFigures) -> int:
    """The rank of a pool in a page: sold out, low, different in the shop, all others."""
    if pool.status != "active":
        return 3
    return 0 if pool.available <= 0 else 1 if pool.low_stock else 2 if figure.sync == "different" else 3


class LowStockPage:
    """Answers requests for the pools that run low."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._list, self._list_pools = console.run["list_low_stock"], console.run["list_pools"]
        self._figures, self._settings = console.run["get_pool_figures"], settings

    def routes(self) -> list[Route]:
        return [self._console.route(LOW_STOCK, "low_stock", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the pools at or below their limits, or below the requested ones."""
        query = read_query(request.query)
        filters = {name: query[name] for name in (*LOW_STOCK_LABELS, "cursor") if query.get(name)}
        low_stock = await try_form(lambda: self._read_low_stock(session, filters))
        refusal = low_stock if isinstance(low_stock, FormRefusal) else None
        pools = low_stock if isinstance(low_stock, LowStockList) else LowStockList([], None)
        command = GetPoolFigures(pool_ids=[pool.pool_id for pool in pools.pools])
        figures: Mapping[int, PoolFigures] = await self._figures(merchant(session), command) if pools.pools else {}
        every_pool: PoolList | None = None
        if not (pools.pools or refusal or filters):
            every_pool = await self._list_pools(merchant(session), ListPools(limit=MAX_COMPARED_POOLS))
        return self._console.page(
            session,
            request,
            "pools/low_stock.html",
            refusal.status if refusal else 200,
            here=LOW_STOCK,
            pools=sorted(pools.pools, key=lambda pool: pool.available / (pool.low_stock_at or 1)),
            figures=figures,
            after=pools.next_cursor,
            values=filters,
            errors=refusal.errors if refusal else {},
            labels=LOW_STOCK_LABELS,
            has_pools=every_pool is None or bool(every_pool.pools),
            closest=every_pool and _closest(every_pool),
            scripts=["live.js"],
            **picture_values(self._settings),
        )

    async def _read_low_stock(self, session: Session, filters: dict[str, str]) -> LowStockList:
        numbers, unread = read_numbers(filters, LOW_STOCK_NUMBERS)
        command = check(ListLowStock, {"limit": LOW_STOCK_PAGE_SIZE, **filters, **numbers}, unread=unread)
        return await self._list(merchant(session), command)


def _closest(pool_list: PoolList) -> Pool | None:
    """The pool that is closest to its limit. None: no pool has a limit, or there are too many to compare."""
    distances = [
        (pool.available - pool.low_stock_at, pool.id, pool)
        for pool in pool_list.pools
        if pool.low_stock_at is not None and pool.status == "active"
    ]
    return min(distances)[2] if distances and not pool_list.next_cursor else None
