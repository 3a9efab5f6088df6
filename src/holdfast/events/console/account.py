"""What somebody can do with an account besides signing out: end all that lets others act for it, and see one's data."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console
from holdfast.events.organizers import accounts
from holdfast.events.organizers.accounts import EndAccess
from holdfast.events.people import proof
from holdfast.events.people.links import path
from holdfast.events.people.proof import OpenData, Opened
from holdfast.events.site import SITE
from holdfast.kit.caller import NOBODY
from holdfast.kit.handler import Reply, Request
from holdfast.kit.modes import single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import FORBIDDEN, Problem
from holdfast.kit.runner import Runner
from holdfast.kit.secrets import Secret

MORE = "console/account.html"
"""The template of what is added to the page of the account."""

SECURE = Operation("end_access", None, single(accounts.end_own_access))
OPEN = Operation("open_own_data", None, single(proof.open))
OPERATIONS = (SECURE, OPEN)
"""They have no routes and no tools of their own."""


class AccountPages:
    """Answers requests of those who are signed in, organizers or not."""

    def __init__(self, console: Console, runner: Runner, secret: Secret) -> None:
        self._door = console.door
        self._secret = secret
        self._secure, self._open = runner[SECURE], runner[OPEN]

    def routes(self) -> list[BaseRoute]:
        return [
            self._door.route("/account/secure", "secure_account", self.secure, "POST", at_once=True),
            self._door.route("/account/data", "account_data", self.data, "POST", at_once=True),
        ]

    async def secure(self, session: Session, request: Request) -> Reply:
        """Ask whether all that lets anybody act for the account is to end, and end it."""
        if request.method != "POST":
            return self._door.page(session, request, "console/secure.html")
        await self._door.read(session, request)
        await self._secure(session.caller or NOBODY, EndAccess(account_id=session.account_id))
        left = self._door.sessions.cookie("session", "", 0)
        return SITE.page("console/secured.html", language=language_of(request), headers=[left])

    async def data(self, session: Session, request: Request) -> Reply:
        """Lead to the page of one's own data; or say that a mail leads there."""
        language = language_of(request)
        if request.method != "POST":
            if session.account.tenant_id is not None:
                return SITE.page("pages/person_end.html", 403, language=language, state="organizer")
            return self._door.page(session, request, "console/own_data.html", state="asking")
        await self._door.read(session, request)
        command = OpenData(account_id=session.account_id, session_id=session.id, language=language.code)
        try:
            opened: Opened = await self._open(NOBODY, command)
        except Problem as problem:
            if problem.type is not FORBIDDEN:
                raise
            return SITE.page("pages/person_end.html", 403, language=language, state="organizer")
        if opened.link is None:
            return self._door.page(session, request, "console/own_data.html", state="sent")
        return redirect(language.at(path(self._secret, opened.link)))
