"""The page of one registration: its status, and what can be done with it, such as sending its mail once more.

An action that takes a seat from a person is confirmed on a page of its own, which says what it does and who is told.
"""

from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.events.check_in.operations import CHECK_IN_PEOPLE, CheckInPeople
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations_pages import SEARCH, list_path
from holdfast.events.mails.failure_reasons import FailureReason, failure_reason
from holdfast.events.paths import id_of
from holdfast.events.problems import EVENT_FULL, REGISTRATION_PENDING, REGISTRATION_REJECTED
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.bulk_changes import BulkResult
from holdfast.events.registrations.details_mail import RESEND_MAIL, ResendMail, ResendStatus
from holdfast.events.registrations.model import DeleteRegistration, UpdateRegistration
from holdfast.events.registrations.search import RegistrationSearchResult, SearchRegistrations
from holdfast.events.registrations.timeline import READ_TIMELINE, ReadTimeline, TimelineEntry
from holdfast.events.site import SITE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.language import language_of

STATUS_OF_ACTION = {"seat": "registered", "wait": "waitlisted"}

STATUSES_TO_CONFIRM = {"wait": {"registered"}, "remove": {"registered", "held", "waitlisted", "pending", "in_draw"}}
"""The changes that are confirmed first, and the statuses in which a registration can be changed so."""


class RegistrationPage:
    """Answers requests for the page of one registration."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: RunOperation = runner.run_of(SEARCH)
        self._timeline: RunOperation = runner.run_of(READ_TIMELINE)
        self._check_in, self._resend = runner.run_of(CHECK_IN_PEOPLE), runner.run_of(RESEND_MAIL)

    def routes(self) -> list[Route]:
        return [self._console.route(f"{list_path('{event_id}')}/{{user_id}}", "registration", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show a registration. With POST check the person in, send the mail again, move or remove the registration."""
        ids = {
            "event_id": id_of(request.fields["event_id"]),
            "user_id": request.fields["user_id"],
        }
        if request.method != "POST":
            return await self._show(session, request, ids, change=read_query(request.query).get("do", ""))
        fields = await self._console.signed_in.read(session, request)
        action = fields.get("do", "")
        own_path = f"{list_path(ids['event_id'])}/{ids['user_id']}"
        try:
            if action == "in":
                return self._console.redirect(request, f"{own_path}?done={await self._enter(session, request, ids)}")
            if action == "mail":
                status: ResendStatus = await self._resend(organizer(session), check(ResendMail, ids))
                return self._console.redirect(request, f"{own_path}?done={status}")
            if action in STATUS_OF_ACTION:
                await self._run(
                    "update_registration", session, UpdateRegistration, ids | {"status": STATUS_OF_ACTION[action]}
                )
                return self._console.redirect(request, own_path)
            if action == "remove":
                await self._run("delete_registration", session, DeleteRegistration, ids)
                return self._console.redirect(request, f"{list_path(ids['event_id'])}?done=removed")
        except Problem as problem:
            # The status is no longer the one on the page: show the page with the present status.
            if problem.type not in {EVENT_FULL, REGISTRATION_PENDING, REGISTRATION_REJECTED}:
                raise
            return await self._show(session, request, ids, 422, refused=True)
        raise BAD_REQUEST("The form does not say what to do.", hint="Open the page again and use its buttons.")

    async def _enter(self, session: Session, request: Request, ids: dict[str, Any]) -> str:
        """Check the person in. Returns the notice for the page: empty if there is no seat any more."""
        device = SITE.texts(language_of(request)).gettext("By hand")
        fields = {"event_id": ids["event_id"], "user_ids": [ids["user_id"]], "device": device}
        result: BulkResult = await self._check_in(organizer(session), check(CheckInPeople, fields))
        return "in" if result.done else ""

    async def _run(self, operation: str, session: Session, kind: Any, fields: dict[str, Any]) -> None:
        await self._console.run[operation](organizer(session), check(kind, fields))

    async def _show(
        self,
        session: Session,
        request: Request,
        ids: dict[str, Any],
        status: int = 200,
        *,
        refused: bool = False,
        change: str = "",
    ) -> Reply:
        """Show a registration, or ask for the confirmation of a change."""
        try:
            command = check(SearchRegistrations, ids)
        except Problem as problem:
            # An invalid public id names no registration.
            raise NOT_FOUND() if problem.type is VALIDATION_FAILED else problem from problem
        result: RegistrationSearchResult = await self._search(organizer(session), command)
        if not result.registrations:
            raise NOT_FOUND("There is no such registration any more.", hint="See the list of registrations.")
        [registration] = result.registrations
        is_confirmed_first = registration.status in STATUSES_TO_CONFIRM.get(change, ())
        timeline = await self._timeline(organizer(session), check(ReadTimeline, ids))
        return self._console.page(
            session,
            request,
            "people/registration_change.html" if is_confirmed_first else "people/registration.html",
            status,
            event=result.event,
            registration=registration,
            timeline=timeline,
            failure_reason=_failure_reason,
            change=change,
            path=list_path(result.event.id),
            digits=digits,
            refused=refused,
            notice=read_query(request.query).get("done", ""),
        )


def _failure_reason(entry: TimelineEntry) -> FailureReason | None:
    """The reason why a mail has failed; None if it has not, or is no mail."""
    return failure_reason(entry.error or "") if (entry.kind, entry.status) == ("mail", "failed") else None
