"""The page of mails about the organizer's events: the status of each, and a retry of failed ones."""

from collections.abc import Sequence

from holdfast.accounts.addresses import canonical
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.mails import operations
from holdfast.events.mails.operations import MAIL_STATUSES, ListMails, MailStatus, MailStatusFilter, RetryMail
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import command_in_path

MAILS = "/console/mails"
PAGE_SIZE = 40
MAX_TEXT = 254
"""The most characters of a searched address."""

LIST = Operation("list_mails", None, read(operations.list))
RETRY = Operation("retry_mail", None, single(operations.retry))
OPERATIONS = (LIST, RETRY)
"""Operations of the console alone: they have no routes of the API and no tools."""


class MailsPage:
    """Answers requests for the list of mails and for a retry."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._retry = runner.run_of(LIST), runner.run_of(RETRY)

    def routes(self) -> list[Route]:
        return [
            self._console.route(MAILS, "mails", self.list),
            self._console.route(f"{MAILS}/{{mail_id}}/retry", "retry_mail", self.retry, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the mails with a status, or all mails, newest first."""
        query = read_query(request.query)
        text = query.get("before", "")
        before = int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None
        text = query.get("q", "").strip()[:MAX_TEXT]
        status = None if text else _status_named(query.get("status"))
        command = ListMails(
            limit=PAGE_SIZE + 1, before=before, status=status, recipient=canonical(text) if text else None
        )
        rows: Sequence[MailStatus] = await self._list(organizer(session), command)
        mails = rows[:PAGE_SIZE]
        last = mails[-1].id if len(rows) > PAGE_SIZE else None
        return self._console.page(
            session,
            request,
            "mails/mails.html",
            here=MAILS,
            mails=mails,
            last=last,
            status_filter=status,
            text=text,
            notice=query.get("done"),
            proved=session.account.is_proved,
        )

    async def retry(self, session: Session, request: Request) -> Reply:
        """Retry a mail, and redirect to the list."""
        if request.method != "POST":
            return self._console.redirect(request, MAILS)
        fields = await self._console.signed_in.read(session, request)
        notice = "again"
        try:
            await self._retry(organizer(session), command_in_path(RetryMail, request))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            notice = "nothing"
        status = _status_named(fields.get("status"))
        return self._console.redirect(request, f"{MAILS}?{f'status={status}&' if status else ''}done={notice}")


def _status_named(name: str | None) -> MailStatusFilter | None:
    """The status that a query or a form names; None: all mails."""
    return next((status for status in MAIL_STATUSES if status == name), None)
