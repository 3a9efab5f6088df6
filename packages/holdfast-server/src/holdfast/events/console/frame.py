"""The shared parts of the console pages: the caller of the session, the required first page, the navigation."""

from collections.abc import Mapping

from holdfast.accounts.agents.agents_page import AGENTS
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import ACCOUNT, HOME, Console
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.site import Place

__all__ = ["BEFORE", "HINT", "HOME", "PLACES", "START", "Console", "first", "organizer", "places"]

START = "/console/start"
BEFORE = "/console/before"

HINT = "console/sign_in_hint.html"
"""The template that says how a link that a command has printed is replaced."""

PLACES = {
    HOME: Place(translatable("Events"), "calendar-days"),
    "/console/queues": Place(translatable("Waiting rooms"), "list-ordered"),
    AGENTS: Place(translatable("Agents"), "bot"),
    "/console/mails": Place(translatable("E-mails"), "mail"),
    "/console/look": Place(translatable("Appearance"), "palette"),
    "/console/payouts": Place(translatable("Payouts"), "wallet"),
    ACCOUNT: Place(translatable("Account"), "circle-user"),
}
"""The entries of the navigation of an organizer, by path."""

ACCOUNT_PLACES = {START: Place(translatable("Become an organizer"), "calendar-plus"), ACCOUNT: PLACES[ACCOUNT]}
"""The entries of an account that is no organizer yet."""


def places(session: Session) -> Mapping[str, Place]:
    """The entries of the navigation of a session."""
    if session.account.tenant_id is None:
        return ACCOUNT_PLACES
    return {**PLACES, AGENTS: PLACES[AGENTS]._replace(waiting=session.account.requests)}


def organizer(session: Session) -> Caller:
    """The signed-in organizer as the caller of operations."""
    assert session.caller, "first() leads accounts without an organizer to the page that makes them one"
    return session.caller


def first(session: Session) -> str | None:
    """The page that an account must complete first: say whose the keys are, or become an organizer. None: no page."""
    if session.way == "link" and not session.account.is_proved:
        return BEFORE
    return START if session.account.tenant_id is None else None
