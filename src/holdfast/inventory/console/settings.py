"""Settings: API access, the cart check and mails. The key can be copied, and made anew; and what agents have done with
each.
"""

from collections.abc import Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.agents import access
from holdfast.inventory.agents.access import Key, RenewKey, ShowAccess
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.merchants.model import AskLowStock, WantLowStock
from holdfast.inventory.shops.model import SCOPES
from holdfast.inventory.site import SITE
from holdfast.inventory.sync.answers import GetSyncStatus
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.said import marked

SETTINGS = "/console/settings"
NEW_KEY = f"{SETTINGS}/key"
MAILS = f"{SETTINGS}/mails"

ALLOWED = {
    "read_inventory": marked("See quantities, the history and what can be sold."),
    "write_inventory": marked("Sell, count, hold and move stock."),
    "read_pools": marked("See pools and their variants."),
    "write_pools": marked("Make and change pools, and link variants."),
}
"""What each scope allows, for people."""

ACROSS = (
    Operation("show_access", None, read(access.show)),
    Operation("renew_key", None, single(access.renew)),
)
"""No transaction of a shop can read keys. So these run in none, and name the shop."""


class SettingsPages:
    """Answers requests for the settings of the shop."""

    def __init__(self, console: Console, base_url: str) -> None:
        self._console = console
        self._show, self._renew = console.run["show_access"], console.run["renew_key"]
        self._status = console.run["get_sync_status"]
        self._asked_low_stock, self._want = console.run["ask_low_stock"], console.run["want_low_stock"]
        self._base_url = base_url

    def routes(self) -> list[BaseRoute]:
        return [
            *SITE.assets("console/copy.js"),
            self._console.route(SETTINGS, "settings", self.show),
            self._console.route(NEW_KEY, "new_key", self.renew, "POST"),
            self._console.route(MAILS, "low_stock_mails", self.mails, "POST"),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the key, what agents have done with it and with those before it, and the cart check."""
        keys: Sequence[Key] = await self._show(merchant(session), ShowAccess())
        good = [each for each in keys if each.active]
        return self._page(
            session,
            request,
            "settings.html",
            key=good[0] if good else None,
            former=[each for each in keys if not each.active],
            base_url=self._base_url,
            state=await self._status(merchant(session), GetSyncStatus()),
            shop=shop_of(session),
            wants_mails=await self._asked_low_stock(merchant(session), AskLowStock()),
            scripts=["console/copy.js"],
        )

    async def renew(self, session: Session, request: Request) -> Reply:
        """Ask what a new key is to be allowed, and make it: the old one ends."""
        if request.method != "POST":
            keys: Sequence[Key] = await self._show(merchant(session), ShowAccess())
            return self._asked(session, request, [*SCOPES] if not keys else keys[0].scopes)
        fields = await self._console.door.read(session, request)
        scopes = [each for each in SCOPES if each in fields]
        done = await tried(lambda: self._made(session, scopes))
        if isinstance(done, Refusal):
            return self._asked(session, request, scopes, done)
        return self._console.to(request, SETTINGS)

    async def mails(self, session: Session, request: Request) -> Reply:
        """Turn the mails about low stock on or off."""
        if request.method == "POST":
            fields = await self._console.door.read(session, request)
            wish = WantLowStock(wanted="wanted" in fields, language=language_of(request).code)
            await self._want(merchant(session), wish)
        return self._console.to(request, SETTINGS)

    async def _made(self, session: Session, scopes: Sequence[str]) -> None:
        await self._renew(merchant(session), check(RenewKey, {"scopes": scopes}))

    def _asked(
        self, session: Session, request: Request, scopes: Sequence[str], refusal: Refusal = NOT_REFUSED
    ) -> Reply:
        return self._page(session, request, "new_key.html", refusal.status, chosen=scopes, refused=bool(refusal.errors))

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=SETTINGS, allowed=ALLOWED, **values)
