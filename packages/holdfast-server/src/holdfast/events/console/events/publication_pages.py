"""How an event changes its status in the console: it is published, becomes a draft again, or is cancelled.

If people could not register on the page of the event, a question comes first: it says what is wrong, and what to do.
"""

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_page import EVENT_PATH, ConsoleEventPage
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import CancelEvent, EventRow, GetEvent, UpdateEvent
from holdfast.events.events.overview import COUNT_PEOPLE, READ_EVENT, EventDetails, PeopleCounts
from holdfast.events.paths import id_of
from holdfast.events.payments.payout_model import Payouts
from holdfast.events.payments.publication_terms import READ_TERMS, Obstacle, PublicationTerms, ReadPublicationTerms
from holdfast.events.problems import EVENT_HAS_REGISTRATIONS
from holdfast.events.processor.currencies import digits, rules_of
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner


class PublicationPage:
    """Answers requests that publish a draft, or make an event a draft again."""

    def __init__(self, console: Console, runner: Runner, event_page: ConsoleEventPage) -> None:
        self._console = console
        self._event_page = event_page
        self._get_event, self._get_terms = runner.run_of(READ_EVENT), runner.run_of(READ_TERMS)

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/publication", "event_publication", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Publish a draft with POST, or make an event a draft again.

        With GET, ask whether to publish a draft that people could not register for. All other events have no question.
        """
        event_id = id_of(request.fields["event_id"])
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else None
        if fields is None or fields.get("do") == "publish":
            details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
            terms: PublicationTerms = await self._get_terms(organizer(session), ReadPublicationTerms())
            obstacles = terms.obstacles(details.event)
            is_draft = not details.event.published and details.event.status != "cancelled"
            if obstacles and is_draft and (fields is None or fields.get("anyway") != "yes"):
                return self._question(session, request, details.event, terms.payouts, obstacles)
        if fields is not None:
            changes = UpdateEvent(event_id=event_id, published=fields.get("do") == "publish")
            try:
                await self._console.run["update_event"](organizer(session), changes)
            except Problem as problem:
                if problem.type is not EVENT_HAS_REGISTRATIONS:
                    raise
                return await self._event_page.show(session, request, 422, problem=problem.errors["published"])
        is_published = fields is not None and fields.get("do") == "publish"
        return self._console.redirect(request, f"{HOME}/events/{event_id}{'?done=published' if is_published else ''}")

    def _question(
        self, session: Session, request: Request, event: EventRow, payouts: Payouts, obstacles: list[Obstacle]
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "events/publication.html",
            event=event,
            obstacles=obstacles,
            payouts=payouts,
            is_owner=session.account.is_proved and session.is_opened_by_mail,
            digits=digits(event.currency),
            rules=rules_of(event.currency),
        )


class CancelEventPage:
    """Answers requests for the page that cancels an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get_event, self._count = runner.run_of(READ_EVENT), runner.run_of(COUNT_PEOPLE)

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/cancel", "cancel_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how many people get a mail; with POST cancel the event."""
        event_id = id_of(request.fields["event_id"])
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            await self._console.run["cancel_event"](organizer(session), CancelEvent(event_id=event_id))
            return self._console.redirect(request, f"{HOME}/events/{event_id}")
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        if details.event.status == "cancelled":
            return self._console.redirect(request, f"{HOME}/events/{event_id}")
        people: PeopleCounts = await self._count(organizer(session), GetEvent(event_id=event_id))
        return self._console.page(
            session, request, "events/cancel_event.html", event=details.event, people=people, digits=digits
        )
