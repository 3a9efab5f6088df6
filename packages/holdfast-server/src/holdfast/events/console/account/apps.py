"""The pages of connected apps: list them with their scopes, and disconnect one."""

from collections.abc import Sequence

from holdfast.accounts.agent_limits import ListLimits
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.keys.operations import LIMITS
from holdfast.events.oauth.model import SCOPES
from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import Connection, Disconnect, ListConnections
from holdfast.events.site import SITE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import language_of
from holdfast.kit.running.runner import Runner

APPS = "/console/apps"


class AppsPages:
    """Answers requests for the pages of the apps that act for the organizer."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._disconnect = runner[grants.LIST], runner[grants.DISCONNECT]
        self._limits = runner[LIMITS.list]

    def routes(self) -> list[Route]:
        return [
            self._console.route(APPS, "apps", self.list),
            self._console.route(f"{APPS}/disconnect", "disconnect_app", self.disconnect, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the apps that act for the organizer, with the scopes of each."""
        texts = SITE.texts(language_of(request))
        meanings = {scope: texts.gettext(meaning) for scope, meaning in SCOPES.items()}
        limits = await self._limits(organizer(session), ListLimits())
        return self._console.page(
            session,
            request,
            "account/apps.html",
            here=APPS,
            apps=await self._apps(session),
            meanings=meanings,
            limits={limit.client_id: limit for limit in limits},
        )

    async def disconnect(self, session: Session, request: Request) -> Reply:
        """Show the question whether to disconnect an app; with POST disconnect it."""
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            await self._disconnect(organizer(session), _disconnect_command(fields.get("app", "")))
            return self._console.to(request, APPS)
        id = read_query(request.query).get("app", "")
        for app in await self._apps(session):
            if app.client_id == id:
                return self._console.page(session, request, "account/app_disconnect.html", here=APPS, app=app)
        raise NOT_FOUND()

    async def _apps(self, session: Session) -> Sequence[Connection]:
        return await self._list(organizer(session), ListConnections())


def _disconnect_command(app: str) -> Disconnect:
    """The command of a form. Raises `not_found` if the id of the app is not valid."""
    try:
        return check(Disconnect, {"client_id": app})
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
