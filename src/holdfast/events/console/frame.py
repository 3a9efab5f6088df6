"""What the pages of the console share: who may open them, and the places in its navigation."""

from holdfast.accounts.console import HOME, Console
from holdfast.accounts.sessions import Session
from holdfast.kit.caller import Caller
from holdfast.kit.said import marked

__all__ = ["BEFORE", "HOME", "PLACES", "START", "Console", "first", "organizer"]

START = "/console/start"
BEFORE = "/console/before"

PLACES = {
    HOME: marked("Events"),
    "/console/queues": marked("Queues"),
    "/console/keys": marked("Keys"),
    "/console/apps": marked("Apps"),
    "/console/mails": marked("Mails"),
    "/console/payouts": marked("Payouts"),
    "/account": marked("Account"),
}
"""The names in the navigation, by their paths."""


def organizer(session: Session) -> Caller:
    """The organizer who is signed in: its caller for operations."""
    assert session.caller, "first() leads accounts without an organizer to the page that makes them one"
    return session.caller


def first(session: Session) -> str | None:
    """Where somebody has to go before any other page: to say whose the keys are, and to become an organizer."""
    if session.way == "link" and not session.account.is_proved:
        return BEFORE
    return START if session.account.tenant_id is None else None
