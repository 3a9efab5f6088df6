"""The shared parts of the console pages: the caller of the session, the required first page, the navigation."""

from holdfast.accounts.console import HOME, Console
from holdfast.accounts.sessions import Session
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import translatable

__all__ = ["BEFORE", "HOME", "PLACES", "START", "Console", "first", "organizer"]

START = "/console/start"
BEFORE = "/console/before"

PLACES = {
    HOME: translatable("Events"),
    "/console/queues": translatable("Queues"),
    "/console/keys": translatable("Keys"),
    "/console/apps": translatable("Apps"),
    "/console/mails": translatable("Mails"),
    "/console/payouts": translatable("Payouts"),
    "/account": translatable("Account"),
}
"""The entries of the navigation: names by path."""


def organizer(session: Session) -> Caller:
    """The signed-in organizer as the caller of operations."""
    assert session.caller, "first() leads accounts without an organizer to the page that makes them one"
    return session.caller


def first(session: Session) -> str | None:
    """The page that an account must complete first: say whose the keys are, or become an organizer. None: no page."""
    if session.way == "link" and not session.account.is_proved:
        return BEFORE
    return START if session.account.tenant_id is None else None
