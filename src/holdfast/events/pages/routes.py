"""The routes of the pages for people."""

from collections.abc import Awaitable, Callable

from starlette.routing import BaseRoute, Route

from holdfast.events.pages import data, linked, operations, outcome, own, person, registering, shown
from holdfast.events.pages.calendar_file import CalendarFile
from holdfast.events.pages.event import EventPage
from holdfast.events.pages.organizer import OrganizerPage
from holdfast.events.pages.shown import Shown
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.discovery import document
from holdfast.kit.handler import Access, Handler, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.lookups import Lookups
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.pages.rendered import constant
from holdfast.kit.runner import Runner

READ = Operation("read_event_page", None, read(operations.read))
READ_ORGANIZER = Operation("read_organizer_page", None, read(operations.read_organizer))
OPERATIONS = (
    *(shown.FIND, READ, READ_ORGANIZER, *registering.OPERATIONS, linked.LOOK),
    *(*own.OPERATIONS, *data.OPERATIONS, *person.OPERATIONS),
)
"""The operations of the pages. They have no routes and no tools of their own."""

ROBOTS = b"User-agent: *\nDisallow: /registrations/\nDisallow: /people/\n"
"""Search engines may show every page except those about one person."""


def routes(database: Database, runner: Runner, limits: Limits, kept: Lookups[int, Shown]) -> list[BaseRoute]:
    """The routes of the pages. `kept`: what links to events show."""
    settings = database.resources.settings

    def page(path: str, access: Access, answer: Callable[[Caller, Request], Awaitable[Reply]]) -> Route:
        return Route(path, Handler(access, limits, answer, SITE.refuse))

    event = EventPage(settings, database.resources.secret, kept, runner[READ])
    calendar = CalendarFile(settings, runner[READ])
    organizer = OrganizerPage(settings, runner[READ_ORGANIZER])
    return [
        page("/organizers/{slug}/events/{event_id}", event.access, event.answer),
        *registering.routes(database, runner, limits, kept),
        page("/events/{event_id}/calendar.ics", calendar.access, calendar.answer),
        page("/organizers/{slug}", organizer.access, organizer.answer),
        constant(SITE, "/", "pages/home.html", limits, "home", base_url=settings.base_url),
        document("/robots.txt", ROBOTS, "text/plain"),
        *outcome.routes(database, runner, limits),
        *own.routes(database, runner, limits),
        *data.routes(database, runner, limits),
        *person.routes(database, runner, limits),
        *SITE.assets("pages/local_time.js"),
    ]
