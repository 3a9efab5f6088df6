"""Settings: the cart check and mails. What concerns keys and agents is on the page "Agents"."""

from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.merchants.model import GetLowStockMails, SetLowStockMails
from holdfast.inventory.sync.model import GetSyncStatus
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import language_of

SETTINGS = "/console/settings"
MAILS = f"{SETTINGS}/mails"


class SettingsPages:
    """Answers requests for the settings of the shop."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.run["get_sync_status"]
        self._get_low_stock, self._want = console.run["get_low_stock_mails"], console.run["set_low_stock_mails"]

    def routes(self) -> list[Route]:
        return [
            self._console.route(SETTINGS, "settings", self.show),
            self._console.route(MAILS, "low_stock_mails", self.mails, "POST"),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the cart check, and whether mails about low stock are on."""
        return self._page(
            session,
            request,
            "settings/settings.html",
            sync_status=await self._status(merchant(session), GetSyncStatus()),
            shop=shop_of(session),
            wants_mails=await self._get_low_stock(merchant(session), GetLowStockMails()),
        )

    async def mails(self, session: Session, request: Request) -> Reply:
        """Turn the mails about low stock on or off."""
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            wish = SetLowStockMails(enabled="mails" in fields, language=language_of(request).code)
            await self._want(merchant(session), wish)
        return self._console.redirect(request, SETTINGS)

    def _page(self, session: Session, request: Request, template: str, **values: Any) -> Reply:
        return self._console.page(session, request, template, here=SETTINGS, **values)
