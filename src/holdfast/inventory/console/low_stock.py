"""The pools that run low."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ListLowStock, LowStockList
from holdfast.inventory.console.frame import Console, merchant
from holdfast.kit.command import check, numbered
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages.refusal import Refusal, tried
from holdfast.kit.said import marked

LOW_STOCK = "/console/low-stock"
SHOWN = 50

LABELS = {"threshold": marked("At or below this many"), "days_of_cover": marked("Or lasts at most this many days")}


class LowStockPage:
    """Answers requests for the pools that run low."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_low_stock"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(LOW_STOCK, "low_stock", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the pools at or below their limits, or below the ones that are asked for."""
        asked = {name: text for name, text in read_query(request.query).items() if name in {*LABELS, "cursor"} and text}
        found = await tried(lambda: self._found(session, asked))
        refusal = found if isinstance(found, Refusal) else None
        pools = found if isinstance(found, LowStockList) else LowStockList([], None)
        return self._console.page(
            session,
            request,
            "low_stock.html",
            refusal.status if refusal else 200,
            here=LOW_STOCK,
            pools=pools.pools,
            after=pools.next_cursor,
            values=asked,
            errors=refusal.errors if refusal else {},
            labels=LABELS,
        )

    async def _found(self, session: Session, asked: dict[str, str]) -> LowStockList:
        command = check(ListLowStock, {"limit": SHOWN, **numbered(ListLowStock, asked)})
        return await self._list(merchant(session), command)
