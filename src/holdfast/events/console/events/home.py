"""The first page of the console: the list of the organizer's events."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import Event
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.postgres.pagination import OffsetPage, Page

PAGE_SIZE = 20


class EventsPage:
    """Answers requests for the list of events."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(HOME, "events", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the organizer's events, oldest first."""
        text = read_query(request.query).get("offset", "0")
        offset = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        page: Page[Event] = await self._console.run["list_events"](
            organizer(session), OffsetPage(limit=PAGE_SIZE, offset=offset)
        )
        after = offset + len(page.data) if page.pagination.has_more else None
        proved = session.account.is_proved
        return self._console.page(session, request, "events/home.html", events=page.data, after=after, proved=proved)
