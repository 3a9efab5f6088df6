"""What the pages of the merchants' console share: who may open them, and the places in its navigation.

The console is shown in a frame of the platform's admin, and in a window of its own. So every link to another page is
`language.at(path)`, a redirect is `console.to(request, path)`, and a form that is sent by GET includes `kept.html`.
"""

from collections.abc import Mapping

from holdfast.accounts.console import HOME, Console
from holdfast.accounts.sessions import Session
from holdfast.inventory.merchants.model import Merchant
from holdfast.kit.caller import Caller, person
from holdfast.kit.said import marked

__all__ = ["HOME", "MORE", "Console", "merchant", "places", "shop_of"]

MORE = "console/account.html"
"""The template of what is added to the page of somebody's account."""

PLACES = {
    HOME: marked("Pools"),
    "/console/low-stock": marked("Low stock"),
    "/console/holds": marked("Holds"),
    "/console/spreadsheets": marked("Spreadsheets"),
    "/console/sync": marked("Sync"),
    "/console/settings": marked("Settings"),
}
"""The names in the navigation, by their paths."""

ALONE = {"/account": marked("Account")}
"""Places of those who have signed in by a link: who comes from the platform has no account here."""


def places(session: Session) -> Mapping[str, str]:
    """What the navigation has for somebody."""
    return PLACES | ALONE if session.email else PLACES


def merchant(session: Session) -> Caller:
    """The merchant who is signed in: the caller for operations, whom the history names."""
    assert session.account.tenant_id, "every merchant has a shop"
    return person(session.account_id, session.account.tenant_id)


def shop_of(session: Session) -> str:
    """The domain of the merchant's shop; empty for whoever is no merchant."""
    account = session.account
    return account.shop if isinstance(account, Merchant) else ""
