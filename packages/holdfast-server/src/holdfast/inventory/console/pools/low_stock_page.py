"""The page of the console with the pools that run low."""

from collections.abc import Mapping

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ListLowStock, LowStockList
from holdfast.inventory.console.frame import Console, merchant, picture_values
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.pools.model import ListPools, Pool, PoolList
from holdfast.inventory.pools.pool_figures import GetPoolFigures, PoolFigures
from holdfast.inventory.settings import Settings
from holdfast.inventory.stock.model import MAX_QUANTITY
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import FormRefusal, try_form

LOW_STOCK = "/console/low-stock"
PAGE_SIZE = 50

MAX_COMPARED_POOLS = 200
"""The most pools of a shop for which the page names the one that is closest to its `low_stock_at`."""

LABELS = {
    "threshold": translatable("Stock at most"),
    "days_of_cover": translatable("Or days left at most"),
}

NUMBER_FIELDS = {"threshold": NumberField(0, MAX_QUANTITY, 30), "days_of_cover": NumberField(1, 365, 14)}


class LowStockPage:
    """Answers requests for the pools that run low."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._list, self._list_pools = console.run["list_low_stock"], console.run["list_pools"]
        self._figures, self._settings = console.run["get_pool_figures"], settings

    def routes(self) -> list[Route]:
        return [self._console.route(LOW_STOCK, "low_stock", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the pools at or below their `low_stock_at`, or as low as the fields of the page say."""
        query = read_query(request.query)
        filters = {name: query[name] for name in (*LABELS, "cursor") if query.get(name)}
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
            labels=LABELS,
            has_pools=every_pool is None or bool(every_pool.pools),
            closest=every_pool and _closest(every_pool),
            scripts=["live.js"],
            **picture_values(self._settings),
        )

    async def _read_low_stock(self, session: Session, filters: dict[str, str]) -> LowStockList:
        numbers, unread = read_numbers(filters, NUMBER_FIELDS)
        command = check(ListLowStock, {"limit": PAGE_SIZE, **filters, **numbers}, unread=unread)
        return await self._list(merchant(session), command)


def _closest(pool_list: PoolList) -> Pool | None:
    """The pool that is closest to its `low_stock_at`. None: no pool has one, or there are too many to compare."""
    distances = [
        (pool.available - pool.low_stock_at, pool.id, pool)
        for pool in pool_list.pools
        if pool.low_stock_at is not None and pool.status == "active"
    ]
    return min(distances)[2] if distances and not pool_list.next_cursor else None
