"""The page of one request of an agent: a person approves it or declines it. Both consoles have it."""

from collections.abc import Awaitable, Callable

from holdfast.accounts.agents.agents_page import AGENTS, REQUESTS, AgentsPage, RequestCard
from holdfast.accounts.agents.approvals import RequestApprovals, RequestChanged, RequestEnded, WaitingRequest
from holdfast.accounts.console import Console
from holdfast.accounts.sessions import Session
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import command_in_path

CONFLICT = 409

MAX_REQUESTS = 50
"""The most requests that the page "Agents" shows."""

Describe = Callable[[Session, Request, WaitingRequest], Awaitable[RequestCard]]
"""The card of a request, in the language of the page."""


class GetRequest(Command):
    """Names a request."""

    id: Id


class RequestsPage:
    """Answers requests for the page.

    caller_of    the caller of a signed-in person
    describe     says what a request changes
    """

    def __init__(
        self,
        console: Console,
        agents: AgentsPage,
        approvals: RequestApprovals,
        caller_of: Callable[[Session], Caller],
        describe: Describe,
    ) -> None:
        self._console = console
        self._agents = agents
        self._approvals = approvals
        self._caller_of = caller_of
        self._describe = describe

    def routes(self) -> list[Route]:
        return [
            self._agents.moved(REQUESTS, "requests"),
            self._console.route(f"{REQUESTS}/{{id}}", "request", self.request, "POST"),
        ]

    async def request(self, session: Session, request: Request) -> Reply:
        """Show a request; with POST approve or decline it."""
        id, person = command_in_path(GetRequest, request).id, self._caller_of(session)
        if request.method != "POST":
            return await self._page(session, request, id)
        fields = await self._console.signed_in.read(session, request)
        try:
            if fields.get("do") == "approve":
                await self._approvals.approve(person, id, fields.get("seen", ""))
            else:
                await self._approvals.decline(person, id)
        except RequestEnded:
            return self._ended_page(session, request, CONFLICT)
        except RequestChanged:
            return await self._page(session, request, id, CONFLICT, has_changed=True)
        except Problem as problem:
            if problem.type is SERVICE_UNAVAILABLE:  # it may be done: nothing is known yet
                raise
            return await self._page(session, request, id, CONFLICT, refusal=problem)
        return self._console.redirect(request, AGENTS)

    async def _page(
        self,
        session: Session,
        request: Request,
        id: int,
        status: int = 200,
        *,
        has_changed: bool = False,
        refusal: Problem | None = None,
    ) -> Reply:
        """The page of a request as it is now, or that of one that has ended."""
        try:
            waiting_request = await self._approvals.find(self._caller_of(session), id)
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return self._ended_page(session, request, NOT_FOUND.status)
        return self._agents.render(
            session,
            request,
            "agents/request.html",
            status,
            card=await self._describe(session, request, waiting_request),
            has_changed=has_changed,
            refusal=refusal,
        )

    def _ended_page(self, session: Session, request: Request, status: int) -> Reply:
        return self._agents.render(session, request, "agents/request_ended.html", status)
