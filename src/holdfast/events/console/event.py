"""The page of one event in the console: how it stands, its price as a picture, and what can be done with it."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event_operations import LOOK, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import GetEvent
from holdfast.events.pages.price_line import draw
from holdfast.events.paths import event_path, id_of
from holdfast.events.pricing.currencies import digits
from holdfast.kit.handler import Reply, Request
from holdfast.kit.runner import Runner

PATH = f"{HOME}/events/{{event_id}}"


class EventPage:
    """Answers requests for the page of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look = runner[LOOK]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(PATH, "event", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show how an event stands."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        event = seen.event
        return self._console.page(
            session,
            request,
            "event.html",
            event=event,
            people=seen.people,
            zone=event.timezone or "UTC",
            digits=digits(event.currency),
            history=draw(seen.prices, min(seen.now, event.datetime)) if seen.prices else None,
            photos=seen.photos,
            public=event_path(event.organizer_slug, event.id),
            images=seen.images_from,
        )
