"""The page that disconnects an app. The page "Agents" lists them."""

from collections.abc import Sequence

from holdfast.accounts.agents.agents_page import AGENTS, AgentsPage
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import Connection, Disconnect, ListConnections
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.running.runner import Runner


class AppsPages:
    """Answers requests for the question whether to disconnect an app that acts for the organizer."""

    def __init__(self, console: Console, runner: Runner, agents: AgentsPage) -> None:
        self._console = console
        self._agents = agents
        self._list, self._disconnect = runner[grants.LIST], runner[grants.DISCONNECT]

    def routes(self) -> list[Route]:
        return [
            self._agents.moved("/console/apps", "apps"),
            self._console.route(f"{AGENTS}/disconnect", "disconnect_app", self.disconnect, "POST"),
        ]

    async def disconnect(self, session: Session, request: Request) -> Reply:
        """Show the question whether to disconnect an app; with POST disconnect it."""
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            await self._disconnect(organizer(session), _disconnect_command(fields.get("app", "")))
            return self._console.to(request, AGENTS)
        id = read_query(request.query).get("app", "")
        apps: Sequence[Connection] = await self._list(organizer(session), ListConnections())
        for app in apps:
            if app.client_id == id:
                return self._console.page(session, request, "agents/app_disconnect.html", here=AGENTS, app=app)
        raise NOT_FOUND()


def _disconnect_command(app: str) -> Disconnect:
    """The command of a form. Raises `not_found` if the id of the app is not valid."""
    try:
        return check(Disconnect, {"client_id": app})
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
