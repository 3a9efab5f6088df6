"""The pools that run low."""

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ListLowStock, LowStockList
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.stock.model import MAX_QUANTITY
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import FormRefusal, try_form

LOW_STOCK = "/console/low-stock"
PAGE_SIZE = 50

LABELS = {
    "threshold": translatable("At or below this many"),
    "days_of_cover": translatable("Or at most this many days left"),
}


NUMBERS = {"threshold": NumberField(0, MAX_QUANTITY, 30), "days_of_cover": NumberField(1, 365, 14)}


class LowStockPage:
    """Answers requests for the pools that run low."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_low_stock"]

    def routes(self) -> list[Route]:
        return [self._console.route(LOW_STOCK, "low_stock", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the pools at or below their limits, or below the requested ones."""
        filters = {
            name: text for name, text in read_query(request.query).items() if name in {*LABELS, "cursor"} and text
        }
        low_stock = await try_form(lambda: self._read_low_stock(session, filters))
        refusal = low_stock if isinstance(low_stock, FormRefusal) else None
        pools = low_stock if isinstance(low_stock, LowStockList) else LowStockList([], None)
        return self._console.page(
            session,
            request,
            "pools/low_stock.html",
            refusal.status if refusal else 200,
            here=LOW_STOCK,
            pools=pools.pools,
            after=pools.next_cursor,
            values=filters,
            errors=refusal.errors if refusal else {},
            labels=LABELS,
            scripts=["live.js"],
        )

    async def _read_low_stock(self, session: Session, filters: dict[str, str]) -> LowStockList:
        numbers, unread = read_numbers(filters, NUMBERS)
        command = check(ListLowStock, {"limit": PAGE_SIZE, **filters, **numbers}, unread=unread)
        return await self._list(merchant(session), command)
