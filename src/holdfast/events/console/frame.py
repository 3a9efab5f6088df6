"""What the pages of the console share: who may open them, their frame, and the operations that they call.

A page calls the operations of the API, as the person who is signed in. So it can do what the API can, and no more.
"""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from holdfast.accounts.door import Answer, Door
from holdfast.accounts.sessions import Session
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.runner import Run

HOME = "/console"
START = "/console/start"
BEFORE = "/console/before"

PLACES = {HOME, "/console/queues", "/console/keys", "/console/apps", "/console/mails", "/account"}
"""The paths in the navigation; the names are in `console.html`."""


class Console:
    """The frame of the console.

    run     the operations of the API, by name
    door    lets those in who are signed in
    """

    def __init__(self, door: Door, run: Mapping[str, Run]) -> None:
        self.door = door
        self.run = run

    def route(self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None) -> Route:
        """The route of a page for organizers. `answer` answers GET, and the methods."""
        return self.door.route(path, f"console_{name}", answer, *methods, limit=limit)

    def page(
        self, session: Session, request: Request, template: str, status: int = 200, *, here: str = HOME, **values: Any
    ) -> Reply:
        """A page of the console. `here`: the place in the navigation."""
        return self.door.page(session, request, f"console/{template}", status, here=here, places=PLACES, **values)

    def to(self, request: Request, path: str) -> Reply:
        """A redirect to another page, in the language of this one."""
        return redirect(language_of(request).at(path))


def organizer(session: Session) -> Caller:
    """The organizer who is signed in: its caller for operations."""
    assert session.caller, "first() leads accounts without an organizer to the page that makes them one"
    return session.caller


def first(session: Session) -> str | None:
    """Where somebody has to go before any other page: to say whose the keys are, and to become an organizer."""
    if session.way == "link" and not session.account.is_proved:
        return BEFORE
    return START if session.account.tenant_id is None else None
