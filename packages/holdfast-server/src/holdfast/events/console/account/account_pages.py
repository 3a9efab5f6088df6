"""The account pages of the console: end all access to the account, and open the page of one's own data."""

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import ACCOUNT
from holdfast.events.console.frame import Console
from holdfast.events.organizers import accounts
from holdfast.events.organizers.accounts import EndAccess
from holdfast.events.people import proof
from holdfast.events.people.model import path
from holdfast.events.people.proof import DataLinkResult, OpenDataLink
from holdfast.events.site import SITE
from holdfast.kit.contract.problems import FORBIDDEN, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.security.service_secret import Secret

ACCOUNT_TEMPLATE = "console/account.html"
"""The template of the part that this service adds to the account page."""

END_ACCESS = Operation("end_access", None, single(accounts.end_own_access))
OPEN_OWN_DATA = Operation("open_own_data", None, single(proof.open))
OPERATIONS = (END_ACCESS, OPEN_OWN_DATA)
"""Operations of the console alone: they have no routes of the API and no tools."""


class AccountPages:
    """Answers requests of signed-in accounts, with or without an organizer."""

    def __init__(self, console: Console, runner: Runner, secret: Secret) -> None:
        self._signed_in = console.signed_in
        self._secret = secret
        self._secure, self._open = runner.run_of(END_ACCESS), runner.run_of(OPEN_OWN_DATA)

    def routes(self) -> list[Route]:
        return [
            self._signed_in.route("/account/secure", "secure_account", self.secure, "POST", skips_first_page=True),
            self._signed_in.route("/account/data", "account_data", self.data, "POST", skips_first_page=True),
        ]

    async def secure(self, session: Session, request: Request) -> Reply:
        """Show the question whether to end the password, sessions, keys and connected apps; with POST end them."""
        if request.method != "POST":
            return self._signed_in.page(session, request, "console/account/secure.html", here=ACCOUNT)
        await self._signed_in.read(session, request)
        await self._secure(session.person, EndAccess(account_id=session.account_id))
        expired_cookie = self._signed_in.sessions.cookie("session", "", 0)
        return SITE.page("console/account/secured.html", language=language_of(request), headers=[expired_cookie])

    async def data(self, session: Session, request: Request) -> Reply:
        """Redirect to the page of one's own data; or say that a mail with the link is sent."""
        language = language_of(request)
        # If the address of an organizer is not proved, only a sign-in by mail shows that the visitor owns the address.
        is_stranger = not session.account.is_proved and session.sign_in_way != "link"
        if session.account.tenant_id is not None and is_stranger:
            return self._own_data(session, request, "organizer", 403)
        if request.method != "POST":
            if session.account.tenant_id is not None and session.account.is_proved:
                return self._own_data(session, request, "organizer", 403)
            return self._own_data(session, request, "asking")
        await self._signed_in.read(session, request)
        command = OpenDataLink(account_id=session.account_id, session_id=session.id, language=language.code)
        try:
            result: DataLinkResult = await self._open(session.person, command)
        except Problem as problem:
            if problem.type is not FORBIDDEN:
                raise
            return self._own_data(session, request, "organizer", 403)
        if result.link is None:
            return self._own_data(session, request, "sent")
        return redirect(language.at(path(self._secret, result.link)))

    def _own_data(self, session: Session, request: Request, state: str, status: int = 200) -> Reply:
        template = "console/account/own_data.html"
        return self._signed_in.page(session, request, template, status, here=ACCOUNT, state=state)
