"""The page of the registrations of one event: a list that refreshes itself, with a search and filters."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations import search
from holdfast.events.registrations.search import RegistrationsPart, SearchRegistrations
from holdfast.kit.contract.command import check
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import single
from holdfast.kit.running.runner import Run, Runner

SEARCH = Operation("search_registrations", None, single(search.search))
OPERATIONS = (SEARCH,)
"""It has no route and no tool of its own."""

NOTICES = ("removed",)


def list_path(event_id: int | str) -> str:
    """The path of the registrations of an event."""
    return f"{HOME}/events/{event_id}/registrations"


def adding_path(event_id: int | str) -> str:
    """The path of the form that registers a person for an event."""
    return f"{HOME}/events/{event_id}/add-registration"


class RegistrationsPage:
    """Answers requests for the list of the registrations of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: Run = runner[SEARCH]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(list_path("{event_id}"), "registrations", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List registrations, newest first; the waiting list in its order."""
        query = read_query(request.query)
        command = search_command(request, query)
        part: RegistrationsPart = await self._search(organizer(session), command)
        return self._console.page(
            session,
            request,
            "people/registrations.html",
            event=part.event,
            registrations=part.registrations,
            asked=command,
            digits=digits,
            path=list_path(part.event.id),
            adding=adding_path(part.event.id),
            kept=urlencode(query_of(command)),
            more=urlencode({**query_of(command), "after": part.more}) if part.more else None,
            notice=query.get("done") if query.get("done") in NOTICES else None,
        )


def search_command(request: Request, query: Mapping[str, str]) -> SearchRegistrations:
    """The search that the path and the query of a page ask for. Raises `not_found` and `validation_failed`."""
    fields: dict[str, Any] = {
        "event_id": id_of(request.scope["path_params"]["event_id"]),
        "state": query.get("state") or None,
        "text": query.get("q", "").strip() or None,
        "after": query.get("after") or None,
    }
    command = check(SearchRegistrations, fields)
    return msgspec.structs.replace(command, newest_first=command.state != "waitlisted")


def query_of(command: SearchRegistrations) -> dict[str, str]:
    """The search and the filter as query parameters for the address of another page."""
    return {name: value for name, value in (("state", command.state), ("q", command.text)) if value}
