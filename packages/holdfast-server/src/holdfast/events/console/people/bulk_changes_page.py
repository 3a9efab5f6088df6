"""The pages on which an organizer does something with several people of an event: a confirmation, and what was left.

The confirmation says what happens to each person: to the seat, to the money, and whether a mail is sent.
"""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.events.check_in.operations import CHECK_IN_PEOPLE, CheckInPeople
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations_pages import (
    REGISTRATIONS_PER_PAGE,
    SEARCH,
    bulk_changes_path,
    list_path,
)
from holdfast.events.paths import id_of
from holdfast.events.registrations import bulk_changes
from holdfast.events.registrations.bulk_changes import (
    MOVE_REGISTRATIONS,
    REMOVE_REGISTRATIONS,
    BulkResult,
    MoveRegistrations,
    RemoveRegistrations,
)
from holdfast.events.registrations.search import RegistrationSearchResult, SearchRegistrations
from holdfast.events.site import SITE
from holdfast.kit.contract.problems import BAD_REQUEST
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.language import language_of

OPERATIONS = (*bulk_changes.OPERATIONS, CHECK_IN_PEOPLE)

ACTIONS: Mapping[str, str] = {"in": "several_in", "wait": "several_moved", "remove": "several_removed"}
"""What can be done, and the notice on the list when it was done with all of them."""

_PUBLIC_ID = re.compile(r"[a-z2-7]{8}")
_BOX = "p-"
"""The beginning of the name of a box in the list. The public id of the person follows."""


class BulkChangesPage:
    """Answers requests for the confirmation, and does what was confirmed."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: RunOperation = runner.run_of(SEARCH)
        self._remove, self._move = runner.run_of(REMOVE_REGISTRATIONS), runner.run_of(MOVE_REGISTRATIONS)
        self._check_in = runner.run_of(CHECK_IN_PEOPLE)

    def routes(self) -> list[Route]:
        return [self._console.route(bulk_changes_path("{event_id}"), "several_registrations", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Ask for the confirmation; with POST do it."""
        event_id = id_of(request.fields["event_id"])
        is_confirmed = request.method == "POST"
        fields = await self._console.signed_in.read(session, request) if is_confirmed else read_query(request.query)
        action = fields.get("do", "")
        if action not in ACTIONS:
            raise BAD_REQUEST("The form does not say what to do.", hint="Open the page again and use its buttons.")
        names = fields.get("people", "").split() if is_confirmed else _chosen(fields)
        user_ids = [name for name in dict.fromkeys(names) if _PUBLIC_ID.fullmatch(name)][:REGISTRATIONS_PER_PAGE]
        if not user_ids:
            return self._console.redirect(request, f"{list_path(event_id)}?done=none_chosen")
        search_result = await self._find(session, event_id, user_ids)
        if not is_confirmed:
            return self._page(session, request, search_result, "people/bulk_changes.html", action=action)
        result = await self._run(session, request, action, event_id, user_ids)
        if not result.skipped:
            return self._console.redirect(
                request, f"{list_path(event_id)}?done={ACTIONS[action]}&count={len(result.done)}"
            )
        return self._page(
            session, request, search_result, "people/bulk_changes_result.html", action=action, result=result
        )

    async def _find(self, session: Session, event_id: int, user_ids: list[str]) -> RegistrationSearchResult:
        return await self._search(
            organizer(session), SearchRegistrations(event_id=event_id, user_ids=user_ids, limit=REGISTRATIONS_PER_PAGE)
        )

    async def _run(
        self, session: Session, request: Request, action: str, event_id: int, user_ids: list[str]
    ) -> BulkResult:
        caller = organizer(session)
        if action == "in":
            device = SITE.texts(language_of(request)).gettext("By hand")
            return await self._check_in(caller, CheckInPeople(event_id=event_id, user_ids=user_ids, device=device))
        if action == "wait":
            return await self._move(caller, MoveRegistrations(event_id=event_id, user_ids=user_ids))
        return await self._remove(caller, RemoveRegistrations(event_id=event_id, user_ids=user_ids))

    def _page(
        self, session: Session, request: Request, search_result: RegistrationSearchResult, template: str, **values: Any
    ) -> Reply:
        shared = {
            "event": search_result.event,
            "registrations": search_result.registrations,
            "path": list_path(search_result.event.id),
            "several": bulk_changes_path(search_result.event.id),
        }
        return self._console.page(session, request, template, **shared, **values)


def _chosen(query: Mapping[str, str]) -> list[str]:
    """The public ids of those whose boxes were ticked in the list."""
    return [name.removeprefix(_BOX) for name in query if name.startswith(_BOX)]
