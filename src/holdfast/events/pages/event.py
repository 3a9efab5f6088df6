"""The page of an event: `/organizers/<slug>/events/<event_id>`.

The page is rendered when the version of the event has changed. Versions are kept too, so a crowd at one event asks the
database for nothing.
"""

import datetime as dt
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from holdfast.events.events.model import EventRow
from holdfast.events.events.recurrence import following
from holdfast.events.events.zones import zone
from holdfast.events.images.model import sizes, urls
from holdfast.events.pages.form import form_of, period
from holdfast.events.pages.markdown import one_line, rendered
from holdfast.events.pages.model import Content, ReadEvent
from holdfast.events.pages.price_line import draw
from holdfast.events.pages.shown import Shown
from holdfast.events.pages.structured import structured
from holdfast.events.paths import event_path, id_of, organizer_path
from holdfast.events.processor.currencies import digits
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Reply, Request
from holdfast.kit.lookups import Lookups
from holdfast.kit.pages.language import LANGUAGES, Language, language_of
from holdfast.kit.pages.rendered import Page, Pages, page
from holdfast.kit.pages.site import secured
from holdfast.kit.problems import NOT_FOUND
from holdfast.kit.runner import Run
from holdfast.kit.secrets import Secret

MAP = "https://www.openstreetmap.org"


class EventPage:
    """Answers requests for the pages of events.

    shown   what links to events show
    read    reads what the page of an event shows
    """

    access = Access("event_page")

    def __init__(self, settings: Settings, secret: Secret, shown: Lookups[int, Shown], read: Run) -> None:
        self._settings = settings
        self._secret = secret
        self._shown = shown
        self._read = read
        self._pages = Pages()

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The page of the event in the address, or of the next occurrence if that is over. Raises `not_found`."""
        named = request.scope["path_params"]
        language = language_of(request)
        shown = await self._shown.get(id_of(named["event_id"]))
        if shown.slug != named["slug"]:
            raise NOT_FOUND()
        key = (shown.event.id, shown.version, shown.is_asked, language, period())

        async def render() -> Page:
            content: Content = await self._read(caller, ReadEvent(event_id=shown.event.id))
            return await self._render(content, language, moved=not shown.is_asked)

        return (await self._pages.get(key, render)).reply(request)

    async def _render(self, content: Content, language: Language, *, moved: bool) -> Page:
        settings, event = self._settings, content.event
        body = await rendered(event.body)
        images = urls(event.image_keys, settings)
        organizer = organizer_path(event.organizer_slug)
        address = settings.base_url + event_path(event.organizer_slug, event.id)
        values: dict[str, Any] = {
            "event": event,
            "title": one_line(event.title),
            "organizer_name": content.organizer_name,
            "organizer_path": language.at(organizer),
            "summary": body.summary,
            "body": body.html,
            "photos": [sizes(key, content.sizes.get(key), settings) for key in event.image_keys],
            "originals": images,
            "address": language.at(address),
            "alternates": {code: f"{address}?lang={code}" for code in LANGUAGES} | {"x-default": address},
            "moved": moved,
            "form": form_of(event, self._settings, self._secret, language),
            "zone": event.timezone or "UTC",
            "digits": digits(event.currency),
            "left": event.capacity - event.registered_count,
            "room": max(0, event.waitinglist_capacity - event.waitlisted_count),
            "interval": max(1, event.recurrence_interval),
            "next": _next(content),
            "map": map_link(event),
            "history": draw(content.prices, min(content.now, event.datetime)) if content.prices else None,
            "structured": structured(
                event,
                address=address,
                organizer=(content.organizer_name, settings.base_url + organizer),
                summary=body.summary,
                images=images,
            ),
        }
        headers = secured(language, images=origin(settings))
        return page(SITE.render("pages/event.html", language=language, **values), headers)


def origin(settings: Settings) -> str:
    """The origin of photos if it is not that of the pages."""
    media, base = urlsplit(settings.media_url), urlsplit(settings.base_url)
    same = (media.scheme, media.netloc) == (base.scheme, base.netloc)
    return "" if same else f"{media.scheme}://{media.netloc}"


def map_link(event: EventRow) -> str | None:
    """The address of a map with the place of an event. Without a pin the map is asked for the address."""
    if event.latitude is not None and event.longitude is not None:
        pin = urlencode({"mlat": f"{event.latitude:.6f}", "mlon": f"{event.longitude:.6f}"})
        return f"{MAP}/?{pin}#map=17/{event.latitude:.5f}/{event.longitude:.5f}"
    if event.address:
        return f"{MAP}/search?query={quote(one_line(event.address, 500), safe='')}"
    return None


def _next(content: Content) -> dt.datetime | None:
    """When an event that recurs takes place again; None if it does not."""
    event = content.event
    if event.recurrence_frequency == "none" or event.cancelled_at or content.recurs_from is None:
        return None
    after = max(event.datetime, content.now)
    frequency, interval = event.recurrence_frequency, event.recurrence_interval
    return following(content.recurs_from, frequency, interval, after, zone(event.timezone))
