"""The shared parts of the console pages: the caller of the session, the required first page, the navigation."""

from collections.abc import Mapping

from holdfast.accounts.agents.agents_page import AGENTS
from holdfast.accounts.console import HOME, Console
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import ACCOUNT
from holdfast.accounts.webhooks.webhook_pages import WEBHOOKS
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.site import NavigationEntry

__all__ = ["BEFORE", "HINT", "HOME", "NAVIGATION", "START", "Console", "first_page", "navigation", "organizer"]

START = "/console/start"
BEFORE = "/console/before"

HINT = "console/sign_in_hint.html"
"""The template that says how a link that a command has printed is replaced."""

NAVIGATION = {
    HOME: NavigationEntry(translatable("Events"), "calendar-days"),
    "/console/queues": NavigationEntry(translatable("Waiting rooms"), "list-ordered"),
    AGENTS: NavigationEntry(translatable("Agents"), "bot"),
    WEBHOOKS: NavigationEntry(translatable("Webhooks"), "webhook"),
    "/console/mails": NavigationEntry(translatable("E-mails"), "mail"),
    "/console/look": NavigationEntry(translatable("Appearance"), "palette"),
    "/console/payouts": NavigationEntry(translatable("Payouts"), "wallet"),
    ACCOUNT: NavigationEntry(translatable("Account"), "circle-user"),
}
"""The entries of the navigation of an organizer, by path."""

NAVIGATION_OF_ACCOUNT = {
    START: NavigationEntry(translatable("Become an organizer"), "calendar-plus"),
    ACCOUNT: NAVIGATION[ACCOUNT],
}
"""The entries of an account that is not an organizer yet."""


def navigation(session: Session) -> Mapping[str, NavigationEntry]:
    """The entries of the navigation of a session."""
    if session.account.tenant_id is None:
        return NAVIGATION_OF_ACCOUNT
    return {**NAVIGATION, AGENTS: NAVIGATION[AGENTS]._replace(waiting_count=session.account.requests)}


def organizer(session: Session) -> Caller:
    """The signed-in organizer as the caller of operations."""
    assert session.caller, "first_page() leads accounts without an organizer to the page that makes them one"
    return session.caller


def first_page(session: Session) -> str | None:
    """The page that an account must complete first: say whose the keys are, or become an organizer. None: no page."""
    if session.sign_in_way == "link" and not session.account.is_proved:
        return BEFORE
    return START if session.account.tenant_id is None else None
