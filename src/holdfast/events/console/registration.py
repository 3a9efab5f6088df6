"""One registration: how it stands, and what can be done with it. Each button says beside it what it will do."""

from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.registrations import SEARCH, list_path
from holdfast.events.paths import id_of
from holdfast.events.problems import EVENT_FULL, REGISTRATION_PENDING, REGISTRATION_REJECTED
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.model import DeleteRegistration, UpdateRegistration
from holdfast.events.registrations.search import Part, SearchRegistrations
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.problems import BAD_REQUEST, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Run, Runner

MOVES = {"seat": "registered", "wait": "waitlisted"}


class RegistrationPage:
    """Answers requests for the page of one registration."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: Run = runner[SEARCH]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{list_path('{event_id}')}/{{user_id}}", "registration", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show a registration, move it between a seat and the waiting list, or remove it."""
        named = {
            "event_id": id_of(request.scope["path_params"]["event_id"]),
            "user_id": request.scope["path_params"]["user_id"],
        }
        if request.method != "POST":
            return await self._shown(session, request, named)
        fields = await self._console.door.read(session, request)
        wanted = fields.get("do", "")
        try:
            if wanted in MOVES:
                await self._run("update_registration", session, UpdateRegistration, named | {"status": MOVES[wanted]})
                return self._console.to(request, f"{list_path(named['event_id'])}/{named['user_id']}")
            if wanted == "remove":
                await self._run("delete_registration", session, DeleteRegistration, named)
                return self._console.to(request, f"{list_path(named['event_id'])}?done=removed")
        except Problem as problem:
            # It stands in another way than the page said: the page is shown as it is now.
            if problem.type not in {EVENT_FULL, REGISTRATION_PENDING, REGISTRATION_REJECTED}:
                raise
            return await self._shown(session, request, named, 422, refused=True)
        raise BAD_REQUEST("The form does not say what to do.", hint="Open the page again and use its buttons.")

    async def _run(self, operation: str, session: Session, kind: Any, fields: dict[str, Any]) -> None:
        await self._console.run[operation](organizer(session), check(kind, fields))

    async def _shown(
        self, session: Session, request: Request, named: dict[str, Any], status: int = 200, *, refused: bool = False
    ) -> Reply:
        try:
            command = check(SearchRegistrations, named)
        except Problem as problem:
            # What is no public id names nobody.
            raise NOT_FOUND() if problem.type is VALIDATION_FAILED else problem from problem
        part: Part = await self._search(organizer(session), command)
        if not part.registrations:
            raise NOT_FOUND("There is no such registration any more.", hint="See the list of registrations.")
        return self._console.page(
            session,
            request,
            "registration.html",
            status,
            event=part.event,
            registration=part.registrations[0],
            path=list_path(part.event.id),
            digits=digits(part.event.currency),
            refused=refused,
        )
