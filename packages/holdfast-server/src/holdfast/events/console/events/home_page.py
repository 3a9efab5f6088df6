"""The first page of the console: the organizer's events, those to come or those that are over."""

from collections.abc import Mapping
from functools import partial
from urllib.parse import urlencode

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.own_events import LIST_OWN, MAX_SEARCH_CHARACTERS, ListOwnEvents, OwnEvent, OwnEvents
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages.cover import title_cover
from holdfast.events.photos.model import ImageAttributes, image_attributes
from holdfast.events.processor.currencies import digits
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner

SEARCH_SCRIPT = "console/events/search.js"


class EventsPage:
    """Answers requests for the list of events."""

    def __init__(self, console: Console, runner: Runner, settings: Settings) -> None:
        self._console = console
        self._list = runner.run_of(LIST_OWN)
        self._settings = settings

    def routes(self) -> list[Route]:
        return [self._console.route(HOME, "events", self.list), *SITE.assets(SEARCH_SCRIPT)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the organizer's events: those to come, or with `?state=past` those that are over."""
        command = _command(read_query(request.query))
        page: OwnEvents = await self._list(organizer(session), command)
        after = command.offset + len(page.events) if page.more else None
        return self._console.page(
            session,
            request,
            "events/home.html",
            events=page.events,
            command=command,
            after=urlencode({**_query_of(command), "offset": after}) if after else None,
            has_any=page.has_any,
            is_without_payouts=page.is_without_payouts,
            revenue=page.revenue,
            proved=session.account.is_proved,
            photo=partial(self._photo, page),
            cover=title_cover,
            digits=digits,
            images=photo_origin(self._settings),
        )

    def _photo(self, page: OwnEvents, event: OwnEvent) -> ImageAttributes | None:
        return image_attributes(event.photo, page.sizes.get(event.photo), self._settings) if event.photo else None


def _command(query: Mapping[str, str]) -> ListOwnEvents:
    offset = query.get("offset", "0")
    return ListOwnEvents(
        period="past" if query.get("state") == "past" else "upcoming",
        text=query.get("q", "").strip()[:MAX_SEARCH_CHARACTERS],
        offset=int(offset) if offset.isascii() and offset.isdigit() and len(offset) < 10 else 0,
    )


def _query_of(command: ListOwnEvents) -> dict[str, str]:
    """The list and the search as query parameters for the address of another page."""
    state = {"state": "past"} if command.period == "past" else {}
    return {**state, **({"q": command.text} if command.text else {})}
