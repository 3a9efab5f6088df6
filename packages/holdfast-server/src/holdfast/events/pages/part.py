"""What public pages register: their routes and their operations."""

from collections.abc import Awaitable, Callable

from holdfast.events.context import Context
from holdfast.events.pages import operations, own_data_pages
from holdfast.events.pages.accent_styles import STYLESHEETS, answer_stylesheet
from holdfast.events.pages.cover import cover_svg
from holdfast.events.pages.cover_file import CoverImage
from holdfast.events.pages.event import cache, live
from holdfast.events.pages.event.live import LiveEvents
from holdfast.events.pages.event.page import EventPage
from holdfast.events.pages.feeds import CalendarFile, OrganizerFeeds
from holdfast.events.pages.organizer_page import LiveOrganizers, OrganizerCache, OrganizerPage
from holdfast.events.pages.registration import form_pages, outcome_page, own_registration_pages
from holdfast.events.queues.event_releases import ReleaseTokenReader
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.answers import cached_refusals
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, read_batched
from holdfast.kit.pages.page_cache import constant_page
from holdfast.kit.process.discovery import document
from holdfast.kit.process.part import Endpoints, Part

READ = Operation("read_event_page", None, read_batched(operations.read))
READ_ORGANIZER = Operation("read_organizer_page", None, read(operations.read_organizer))
READ_FEED = Operation("read_organizer_feed", None, read(operations.read_feed))
OPERATIONS = (
    *(
        cache.FIND_LINKED_EVENT,
        READ,
        READ_ORGANIZER,
        READ_FEED,
        *form_pages.OPERATIONS,
        own_registration_pages.READ_REGISTRATION,
        own_registration_pages.READ_REMOVED_PAYMENT,
        own_registration_pages.GET_RECEIPT,
        outcome_page.CORRECT_ADDRESS,
    ),
    *(
        *own_registration_pages.OPERATIONS,
        *own_data_pages.REQUEST_OPERATIONS,
        *own_data_pages.OPERATIONS,
    ),
)
"""The operations of the pages. They have no routes and no tools of their own."""

EXAMPLE = "Open studio evening"
"""The title of the event in the picture on the start page."""

ROBOTS = b"User-agent: *\nDisallow: /registrations/\nDisallow: /people/\n"
"""Search engines may index every page except those about one person."""


def endpoints(context: Context) -> Endpoints:
    """The routes of the pages, and the caches of what they show."""
    database, runner, limits, streams = context.database, context.runner, context.limits, context.streams
    settings = database.resources.settings
    linked_events = cache.linked_event_cache(database, runner)
    organizers = OrganizerCache(database, runner.run_of(READ_ORGANIZER))
    live_events, live_organizers = LiveEvents(database), LiveOrganizers(database, runner, organizers)

    def page(path: str, access: Access, answer: Callable[[Caller, Request], Awaitable[Reply]]) -> Route:
        return Route(path, Handler(access, limits, answer, cached_refusals(SITE.refuse)))

    tokens = ReleaseTokenReader(database)
    event = EventPage(database, limits, linked_events, organizers, runner.run_of(READ))
    cover = CoverImage(linked_events)
    calendar = CalendarFile(settings, runner.run_of(READ))
    organizer = OrganizerPage(settings, organizers, runner.run_of(READ_ORGANIZER))
    feeds = OrganizerFeeds(settings, runner.run_of(READ_FEED))
    routes = [
        page("/organizers/{slug}/events/{event_id}", event.access, event.answer),
        page("/events/{event_id}", Access("short_event_page"), event.find),
        page("/events/{event_id}/preview/{signature}", Access("event_preview"), event.preview),
        *form_pages.routes(database, runner, limits, linked_events, event, tokens),
        page("/events/{event_id}/cover-{version}.png", cover.access, cover.answer),
        *live.routes(database, limits, live_events, streams, tokens),
        *live_organizers.routes(limits, streams),
        page("/accents/{name}.css", STYLESHEETS, answer_stylesheet),
        page("/events/{event_id}/calendar.ics", calendar.access, calendar.answer),
        page("/organizers/{slug}/events.ics", feeds.access, feeds.calendar),
        page("/organizers/{slug}/events.rss", feeds.access, feeds.rss),
        page("/organizers/{slug}", organizer.access, organizer.answer),
        page("/organizers/{slug}/events", Access("short_organizer_page"), organizer.find),
        constant_page(
            SITE, "/", "pages/home.html", limits, "home", base_url=settings.base_url, cover=cover_svg(EXAMPLE)
        ),
        constant_page(SITE, "/developers", "pages/developers.html", limits, "developers", base_url=settings.base_url),
        document("/robots.txt", ROBOTS, "text/plain"),
        *outcome_page.routes(database, runner, limits),
        *own_registration_pages.routes(database, runner, limits),
        *own_data_pages.request_routes(database, runner, limits),
        *own_data_pages.routes(database, runner, limits),
        *SITE.assets("pages/local_time.js", "chart.js"),
    ]
    return Endpoints(
        routes,
        caches=[
            linked_events.forgetting,
            tokens.forgetting,
            live_events.listening,
            organizers.forgetting,
            live_organizers.listening,
        ],
    )


PART = Part(operations=OPERATIONS, endpoints=endpoints)
