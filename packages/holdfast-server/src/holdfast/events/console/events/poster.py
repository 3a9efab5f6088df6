"""A poster of an event: a page to print, with the cover, when and where it is, and a QR code of its page."""

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_operations import READ_EVENT, EventDetails
from holdfast.events.console.events.share import share_of
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import GetEvent
from holdfast.events.pages.cover import title_cover
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.running.runner import Runner

PRINT_SCRIPT = "console/events/poster.js"


class PosterPage:
    """Answers requests for the poster of an event."""

    def __init__(self, console: Console, runner: Runner, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._get_event = runner[READ_EVENT]

    def routes(self) -> list[Route]:
        return [
            self._console.route(f"{HOME}/events/{{event_id}}/poster", "event_poster", self.show),
            *SITE.assets(PRINT_SCRIPT),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the poster, as it is printed below the bar with the button."""
        command = GetEvent(event_id=id_of(request.fields["event_id"]))
        details: EventDetails = await self._get_event(organizer(session), command)
        event = details.event
        return self._console.page(
            session,
            request,
            "events/poster.html",
            event=event,
            zone=event.timezone or "UTC",
            photo=next(iter(details.photos), None),
            cover=title_cover,
            images=details.images_from,
            share=share_of(event, self._settings),
            digits=digits(event.currency),
            scripts=[PRINT_SCRIPT],
        )
