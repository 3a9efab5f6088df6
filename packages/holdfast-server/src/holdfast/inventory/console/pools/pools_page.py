"""The first page of the console: the shop's pools, with figures of each."""

import asyncio
from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant, picture_values, shop_of
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import GetPool, ListPools, Pool, PoolList
from holdfast.inventory.pools.pool_figures import GetPoolFigures, PoolFigures
from holdfast.inventory.settings import Settings
from holdfast.inventory.sync.model import ListUnsyncedPools, UnsyncedPools
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route

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
