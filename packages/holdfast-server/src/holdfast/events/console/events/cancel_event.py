"""The page that cancels an event. It shows first how many people get a mail, and what is refunded."""

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event import PATH
from holdfast.events.console.events.event_operations import COUNT_PEOPLE, READ_EVENT, EventDetails, PeopleCounts
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import CancelEvent, GetEvent
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.running.runner import Runner


class CancelEventPage:
    """Answers requests for the page that cancels an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get_event, self._count = runner[READ_EVENT], runner[COUNT_PEOPLE]

    def routes(self) -> list[Route]:
        return [self._console.route(f"{PATH}/cancel", "cancel_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how many people get a mail; with POST cancel the event."""
        event_id = id_of(request.fields["event_id"])
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            await self._console.run["cancel_event"](organizer(session), CancelEvent(event_id=event_id))
            return self._console.to(request, f"{HOME}/events/{event_id}")
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        if details.event.status == "cancelled":
            return self._console.to(request, f"{HOME}/events/{event_id}")
        people: PeopleCounts = await self._count(organizer(session), GetEvent(event_id=event_id))
        return self._console.page(
            session, request, "events/cancel_event.html", event=details.event, people=people, digits=digits
        )
