"""The page that cancels an event. It says first who will be told."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event import PATH
from holdfast.events.console.event_operations import COUNT, LOOK, People, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import CancelEvent, GetEvent
from holdfast.events.paths import id_of
from holdfast.kit.handler import Reply, Request
from holdfast.kit.runner import Runner


class CancelEventPage:
    """Answers requests for the page that cancels an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look, self._count = runner[LOOK], runner[COUNT]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{PATH}/cancel", "cancel_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Say who will be told, or cancel the event."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        if request.method == "POST":
            await self._console.door.read(session, request)
            await self._console.run["cancel_event"](organizer(session), CancelEvent(event_id=event_id))
            return self._console.to(request, f"{HOME}/events/{event_id}")
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        if seen.event.status == "cancelled":
            return self._console.to(request, f"{HOME}/events/{event_id}")
        people: People = await self._count(organizer(session), GetEvent(event_id=event_id))
        return self._console.page(session, request, "cancel_event.html", event=seen.event, people=people)
