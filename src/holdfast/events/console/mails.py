"""The page of mails about the organizer's events: what came of each, and another try for those that failed."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.mails import fate
from holdfast.events.mails.fate import FATES, Fate, ListMails, RetryMail, Wanted
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.own import named
from holdfast.kit.problems import NOT_FOUND, Problem
from holdfast.kit.runner import Runner

MAILS = "/console/mails"
SHOWN = 50

LIST = Operation("list_mails", None, read(fate.list))
RETRY = Operation("retry_mail", None, single(fate.retry))
OPERATIONS = (LIST, RETRY)
"""They have no routes and no tools of their own."""


class MailsPage:
    """Answers requests for the list of mails, and tries one again."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._retry = runner[LIST], runner[RETRY]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(MAILS, "mails", self.list),
            self._console.route(f"{MAILS}/{{mail_id}}/retry", "retry_mail", self.retry, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the mails of a fate, or all, the newest first."""
        asked = read_query(request.query)
        text = asked.get("before", "")
        before = int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None
        of = _fate(asked.get("fate"))
        command = ListMails(limit=SHOWN + 1, before=before, fate=of)
        found: Sequence[Fate] = await self._list(organizer(session), command)
        mails = found[:SHOWN]
        last = mails[-1].id if len(found) > SHOWN else None
        return self._console.page(
            session, request, "mails.html", here=MAILS, mails=mails, last=last, fate=of, notice=asked.get("done")
        )

    async def retry(self, session: Session, request: Request) -> Reply:
        """Try a mail again, and go back to the list."""
        if request.method != "POST":
            return self._console.to(request, MAILS)
        fields = await self._console.door.read(session, request)
        done = "again"
        try:
            await self._retry(organizer(session), named(RetryMail, request))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            done = "nothing"
        of = _fate(fields.get("fate"))
        return self._console.to(request, f"{MAILS}?{f'fate={of}&' if of else ''}done={done}")


def _fate(name: str | None) -> Wanted | None:
    """The fate that an address or a form names; None: all."""
    return next((each for each in FATES if each == name), None)
