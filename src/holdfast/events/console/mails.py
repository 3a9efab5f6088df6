"""The page of mails about the organizer's events, and what came of them."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.mails import fate
from holdfast.events.mails.fate import Fate, ListMails
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.runner import Runner

MAILS = "/console/mails"
SHOWN = 50

LIST = Operation("list_mails", None, read(fate.list))
OPERATIONS = (LIST,)
"""They have no routes and no tools of their own."""


class MailsPage:
    """Answers requests for the list of mails."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list = runner[LIST]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(MAILS, "mails", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the mails, the newest first."""
        text = read_query(request.query).get("before", "")
        before = int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None
        found: Sequence[Fate] = await self._list(organizer(session), ListMails(limit=SHOWN + 1, before=before))
        mails = found[:SHOWN]
        last = mails[-1].id if len(found) > SHOWN else None
        return self._console.page(session, request, "mails.html", here=MAILS, mails=mails, last=last)
