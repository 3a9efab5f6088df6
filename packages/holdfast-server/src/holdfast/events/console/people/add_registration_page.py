"""The page on which the organizer registers a person by hand."""

from collections.abc import Mapping, Sequence

from holdfast.accounts.addresses import canonical, usable_address
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations_pages import SEARCH, adding_path, list_path
from holdfast.events.paths import id_of
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL
from holdfast.events.registrations import accepting
from holdfast.events.registrations.model import MAX_NAME_CHARACTERS, AcceptedRegistration, AddPerson
from holdfast.events.registrations.search import RegistrationSearchResult, SearchRegistrations
from holdfast.events.registrations.sign_up import clean_name
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, batched
from holdfast.kit.operations.runner import Runner, RunOperation

ADD_PERSON = Operation("add_person", None, batched(accepting.add))
OPERATIONS = (ADD_PERSON,)
"""An operation of the console alone: it has no route of the API and no tool."""

EVENT_REFUSALS = (EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL)
"""The problems of the event that the page shows: the event accepts no registration."""


class AddRegistrationPage:
    """Answers requests for the form that registers a person."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: RunOperation = runner.run_of(SEARCH)
        self._add: RunOperation = runner.run_of(ADD_PERSON)

    def routes(self) -> list[Route]:
        return [self._console.route(adding_path("{event_id}"), "add_registration", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the form; with POST register the person."""
        event_id = id_of(request.fields["event_id"])
        if request.method != "POST":
            return await self._form(session, request, event_id, {"notify": "yes"}, ())
        fields = await self._console.signed_in.read(session, request)
        email, name = canonical(fields.get("email", "")), clean_name(fields.get("name", ""))
        wrong = [] if usable_address(email) else ["email"]
        wrong += ["name"] if name and len(name) > MAX_NAME_CHARACTERS else []
        if wrong:
            return await self._form(session, request, event_id, fields, wrong, 422)
        command = AddPerson(event_id=event_id, email=email, name=name, notify=fields.get("notify") == "yes")
        try:
            answer: AcceptedRegistration = await self._add(organizer(session), command)
        except Problem as problem:
            if problem.type not in EVENT_REFUSALS:
                raise
            return await self._form(session, request, event_id, fields, ("event",), problem.status)
        return self._console.redirect(request, f"{list_path(event_id)}/{answer.next.url.rpartition('/')[2]}")

    async def _form(
        self,
        session: Session,
        request: Request,
        event_id: int,
        values: Mapping[str, str],
        wrong: Sequence[str],
        status: int = 200,
    ) -> Reply:
        """The page with the form. `wrong` names what has an error: `email`, `name` or `event`."""
        result: RegistrationSearchResult = await self._search(
            organizer(session), SearchRegistrations(event_id=event_id, limit=1)
        )
        return self._console.page(
            session,
            request,
            "people/add_registration.html",
            status,
            event=result.event,
            path=list_path(event_id),
            adding=adding_path(event_id),
            values=values,
            wrong=wrong,
        )
