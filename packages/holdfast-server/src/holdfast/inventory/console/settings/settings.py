"""Settings: API access, the cart check and mails. The key can be copied and renewed; the page shows what each was used
for.
"""

from collections.abc import Sequence
from typing import Any

from holdfast.accounts.agent_limits import ListLimits
from holdfast.accounts.sessions import Session
from holdfast.inventory.agents import access
from holdfast.inventory.agents.access import Key, RenewKey, ShowAccess
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.merchants.model import GetLowStockMails, SetLowStockMails
from holdfast.inventory.shops.model import SCOPES
from holdfast.inventory.shops.operations import LIMITS
from holdfast.inventory.site import SITE
from holdfast.inventory.sync.model import GetSyncStatus
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form
from holdfast.kit.pages.language import language_of
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import read, single
from holdfast.kit.running.runner import Runner

SETTINGS = "/console/settings"
NEW_KEY = f"{SETTINGS}/key"
MAILS = f"{SETTINGS}/mails"

ALLOWED = {
    "read_inventory": translatable("See quantities, the history and what can be sold."),
    "write_inventory": translatable("Sell, count, hold and move stock."),
    "read_pools": translatable("See pools and their variants."),
    "write_pools": translatable("Make and change pools, and link variants."),
}
"""The words for what each scope allows."""

SUGGESTED_SCOPES = ("read_inventory", "read_pools")
"""The scopes that the form of a new key suggests: to look at stock. What changes something is chosen on purpose."""

ACROSS = (
    Operation("show_access", None, read(access.show)),
    Operation("renew_key", None, single(access.renew)),
    Operation("name_keys", None, read(access.name_keys)),
)
"""Operations on keys. No transaction of a shop can read keys, so these run in none, and name the shop."""


class SettingsPages:
    """Answers requests for the settings of the shop."""

    def __init__(self, console: Console, base_url: str, account_runner: Runner) -> None:
        self._console = console
        self._limits = account_runner[LIMITS.list]
        self._show, self._renew = console.run["show_access"], console.run["renew_key"]
        self._status = console.run["get_sync_status"]
        self._get_low_stock, self._want = console.run["ask_low_stock"], console.run["want_low_stock"]
        self._base_url = base_url

    def routes(self) -> list[Route]:
        return [
            *SITE.assets("copy.js"),
            self._console.route(SETTINGS, "settings", self.show),
            self._console.route(NEW_KEY, "new_key", self.renew, "POST"),
            self._console.route(MAILS, "low_stock_mails", self.mails, "POST"),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the key, what agents have done with it and with earlier ones, and the cart check."""
        keys: Sequence[Key] = await self._show(merchant(session), ShowAccess())
        good = [key for key in keys if key.active]
        return self._page(
            session,
            request,
            "settings/settings.html",
            key=good[0] if good else None,
            limits={limit.key_id: limit for limit in await self._limits(merchant(session), ListLimits())},
            former=[key for key in keys if not key.active],
            base_url=self._base_url,
            state=await self._status(merchant(session), GetSyncStatus()),
            shop=shop_of(session),
            wants_mails=await self._get_low_stock(merchant(session), GetLowStockMails()),
            scripts=["copy.js"],
        )

    async def renew(self, session: Session, request: Request) -> Reply:
        """Show the form for the scopes of a new key, or make it: the old one ends."""
        if request.method != "POST":
            return await self._new_key_page(session, request, SUGGESTED_SCOPES)
        fields = await self._console.signed_in.read(session, request)
        scopes = [scope for scope in SCOPES if scope in fields]
        done = await try_form(lambda: self._renew_key(session, scopes))
        if isinstance(done, FormRefusal):
            return await self._new_key_page(session, request, scopes, done)
        return self._console.to(request, SETTINGS)

    async def mails(self, session: Session, request: Request) -> Reply:
        """Turn the mails about low stock on or off."""
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            wish = SetLowStockMails(enabled="wanted" in fields, language=language_of(request).code)
            await self._want(merchant(session), wish)
        return self._console.to(request, SETTINGS)

    async def _renew_key(self, session: Session, scopes: Sequence[str]) -> None:
        await self._renew(merchant(session), check(RenewKey, {"scopes": scopes}))

    async def _new_key_page(
        self, session: Session, request: Request, scopes: Sequence[str], refusal: FormRefusal = NOT_REFUSED
    ) -> Reply:
        keys: Sequence[Key] = await self._show(merchant(session), ShowAccess())
        present = [scope for key in keys if key.active for scope in key.scopes]
        return self._page(
            session,
            request,
            "settings/new_key.html",
            refusal.status,
            chosen=scopes,
            has_key=any(key.active for key in keys),
            present=present,
            lost=[scope for scope in present if scope not in scopes],
            refused=bool(refusal.errors),
        )

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=SETTINGS, allowed=ALLOWED, **values)
