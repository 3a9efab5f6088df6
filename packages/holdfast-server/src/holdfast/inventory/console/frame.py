"""Shared parts of the pages of the merchants' console: who may open them, and the places in its navigation.

The console is shown in a frame of the platform's admin, and in a window of its own. So every link to another page is
`language.at(path)`, a redirect is `console.redirect(request, path)`, and a form that is sent by GET includes
`query_fields.html`.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from holdfast.accounts.agents.agents_page import AGENTS
from holdfast.accounts.console import HOME, Console
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import ACCOUNT
from holdfast.accounts.webhooks.webhook_pages import WEBHOOKS
from holdfast.inventory.merchants.model import Merchant
from holdfast.inventory.settings import Settings
from holdfast.kit.contract.caller import Caller, person
from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.site import NavigationEntry

__all__ = [
    "ACCOUNT_TEMPLATE",
    "HOME",
    "SIGN_IN_HINT_TEMPLATE",
    "Console",
    "merchant",
    "navigation",
    "picture_values",
    "shop_of",
]

ACCOUNT_TEMPLATE = "console/account.html"
"""The template of the inventory part of the account page."""

SIGN_IN_HINT_TEMPLATE = "console/sign_in_hint.html"
"""The template with who can sign in by a link."""

NAVIGATION = {
    HOME: NavigationEntry(translatable("Pools"), "package"),
    "/console/low-stock": NavigationEntry(translatable("Low stock"), "trending-down"),
    "/console/holds": NavigationEntry(translatable("Holds"), "hand"),
    "/console/spreadsheets": NavigationEntry(translatable("Spreadsheets"), "sheet"),
    "/console/sync": NavigationEntry(translatable("Sync"), "refresh-cw"),
    AGENTS: NavigationEntry(translatable("Agents"), "bot"),
    WEBHOOKS: NavigationEntry(translatable("Webhooks"), "webhook"),
    "/console/settings": NavigationEntry(translatable("Settings"), "settings"),
}
"""The entries of the navigation, by path."""

NAVIGATION_OF_LINK = {ACCOUNT: NavigationEntry(translatable("Account"), "circle-user")}
"""Places of merchants who have signed in by a link. A merchant who comes from the platform has no account here."""


def navigation(session: Session) -> Mapping[str, NavigationEntry]:
    """The places in the navigation of a session."""
    entries = {**NAVIGATION, AGENTS: NAVIGATION[AGENTS]._replace(waiting_count=session.account.requests)}
    return entries | NAVIGATION_OF_LINK if session.email else entries


def merchant(session: Session) -> Caller:
    """The signed-in merchant: the caller for operations, whom the history names."""
    assert session.account.tenant_id, "every merchant has a shop"
    return person(session.account_id, session.account.tenant_id)


def picture_values(settings: Settings) -> Mapping[str, Any]:
    """The values of a page that shows pictures of products: they come from where the platform's script comes from."""
    address = urlsplit(settings.app_bridge)
    origin = f"{address.scheme}://{address.netloc}"
    return {"images": origin, "pictures_from": origin}


def shop_of(session: Session) -> str:
    """The domain of the merchant's shop; empty for any other account."""
    account = session.account
    return account.shop if isinstance(account, Merchant) else ""
