"""The page of an event: `/organizers/<slug>/events/<event_id>`.

The page is rendered when the version of the event has changed. Versions are cached too, so a crowd at one event costs
no database query.
"""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from holdfast.events.events import text
from holdfast.events.events.model import EventRow, zone
from holdfast.events.events.recurrence import next_occurrence_at
from holdfast.events.organizers.look import photo_origin
from holdfast.events.pages.cover import cover_path, cover_svg
from holdfast.events.pages.event.cache import LinkedEvent
from holdfast.events.pages.event.structured_data import event_json_ld
from holdfast.events.pages.look import look_values
from holdfast.events.pages.model import EventContent, PricePoint, ReadEvent
from holdfast.events.pages.registration.form import form_of, period
from holdfast.events.paths import event_path, id_of, organizer_path, released_path
from holdfast.events.photos.model import image_attributes, urls
from holdfast.events.processor.currencies import digits
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.events.texts.markdown import one_line, without_links
from holdfast.events.texts.outbound_texts import OMISSION, outbound, outbound_text
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Access, Header, Reply, Request
from holdfast.kit.mail.message import joined_lines
from holdfast.kit.pages.chart import Chart, draw_steps
from holdfast.kit.pages.language import LANGUAGES, Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import HTML, redirect, security_headers
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.running.runner import Run
from holdfast_verify.formats.beacon import CHAIN
from holdfast_verify.formats.drawn_order import DRAWN_ORDER

MAP_SITE = "https://www.openstreetmap.org"

_RELEASE_TOKEN = b"queue_token="
"""How the token of a waiting room begins in a query."""


EVENT_PAGES = cache_bound("Rendered pages of events", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


class EventPage:
    """Answers requests for the pages of events.

    linked_events    the cache of the events that links show
    read             reads the content of the page of an event
    """

    access = Access("event_page")

    def __init__(self, database: Database, linked_events: LookupCache[int, LinkedEvent], read: Run) -> None:
        self._database = database
        self._settings = database.resources.settings
        self._secret = database.resources.secret
        self._linked_events = linked_events
        self._read = read
        self._pages = PageCache(EVENT_PAGES)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The page of the event in the address, or of the next occurrence if that is over. Raises `not_found`.

        A visitor whom a waiting room lets in arrives with a token for other sites. The page does not need it, and its
        address is short again without it.
        """
        fields = request.fields
        language = language_of(request)
        if _RELEASE_TOKEN in request.query:
            return redirect(language.at(request.path))
        linked_event = await self._linked_events.get(id_of(fields["event_id"]))
        if linked_event.slug != fields["slug"]:
            raise NOT_FOUND()
        key = (linked_event.event.id, linked_event.version, linked_event.is_asked, language, period())

        async def render() -> CachedPage:
            return cached_page(await self._render(caller, language, linked_event), self._headers(language))

        return (await self._pages.get(key, render)).reply(request)

    async def find(self, caller: Caller, request: Request) -> Reply:
        """Redirect an address without the organizer to the page of the event. Raises `not_found`."""
        linked_event = await self._linked_events.get(id_of(request.fields["event_id"]))
        path = event_path(linked_event.slug, linked_event.requested_id)
        return redirect(language_of(request).at(path))

    async def with_form(
        self, caller: Caller, language: Language, linked_event: LinkedEvent, status: int, **form_values: Any
    ) -> Reply:
        """The page with a form that was sent and refused. `form_values` are keyword arguments of `form_of`."""
        content = await self._render(caller, language, linked_event, **form_values)
        return Reply(status, content.encode(), self._headers(language), HTML)

    def _headers(self, language: Language) -> list[Header]:
        return security_headers(language, images=photo_origin(self._settings))

    async def _render(self, caller: Caller, language: Language, linked_event: LinkedEvent, **form_values: Any) -> str:
        content: EventContent = await self._read(caller, ReadEvent(event_id=linked_event.event.id))
        settings, event = self._settings, content.event
        body = await text.find_or_render(
            self._database, event, content.text, is_proved=content.organizer_name is not None
        )
        images = urls(event.image_keys, settings)
        organizer = organizer_path(event.organizer_slug)
        address = settings.base_url + event_path(event.organizer_slug, event.id)
        # Until the organizer has confirmed its address, our pages show no name, logo or link that it has chosen.
        name = content.organizer_name
        previewed, html = (images, body.html) if name is not None else ([], without_links(body.html))
        outside = outbound(event, OMISSION, is_confirmed=name is not None)
        summary = outbound_text(body.summary, is_confirmed=name is not None)
        title = one_line(outside.title)
        drawn = [] if name is None or images else [settings.base_url + cover_path(event.id, title)]
        form = form_of(
            event,
            settings,
            self._secret,
            language,
            refund_days=linked_event.event.refund_days,
            queue=content.queue,
            **form_values,
        )
        values: dict[str, Any] = {
            "event": event,
            "version": content.version,
            "numbered": content.numbered,
            "opening": content.opening,
            "check": content.check,
            "beacon": CHAIN,
            "drawn_order": DRAWN_ORDER,
            "title": title,
            "organizer_name": name,
            "is_confirmed": name is not None,
            "organizer_path": language.at(organizer),
            **look_values(content.accent, content.logo, settings),
            "summary": summary,
            "body": Markup(html),  # noqa: S704 - it was cleaned when it was rendered
            "photos": [image_attributes(key, content.sizes.get(key), settings) for key in event.image_keys],
            "originals": images,
            "preview": next(iter(previewed or drawn), None),
            "cover": cover_svg(one_line(event.title)),
            "address": language.at(address),
            "alternates": {code: f"{address}?lang={code}" for code in LANGUAGES} | {"x-default": address},
            "is_running": event.status == "expired" and event.ends_at is not None and content.now < event.ends_at,
            "moved": not linked_event.is_asked,
            "page": language.at(
                event_path(event.organizer_slug, event.id)
                if not form_values.get("is_released")
                else released_path(event.id)
            ),
            "form": form,
            "zone": event.timezone or "UTC",
            "digits": digits(event.currency),
            "left": event.capacity - event.registered_count,
            "room": max(0, event.waitinglist_capacity - event.waitlisted_count),
            "interval": max(1, event.recurrence_interval),
            "next": _next_occurrence(content),
            "map": map_link(event),
            "history": price_chart(content.prices, min(content.now, event.datetime)),
            "price_text": partial(language.money, currency=event.currency, digits=digits(event.currency)),
            "structured": event_json_ld(
                outside,
                address=address,
                organizer=(name, settings.base_url + organizer) if name is not None else None,
                summary=summary,
                images=previewed or drawn,
            ),
        }
        return SITE.render("pages/event.html", language=language, **values)


def price_chart(prices: Sequence[PricePoint], until: dt.datetime) -> Chart | None:
    """The chart of a price, oldest first, until a moment. None if it has never changed."""
    if len({point.price for point in prices}) < 2:
        return None
    return draw_steps([(point.timestamp, point.price) for point in prices], until)


def map_link(event: EventRow) -> str | None:
    """The address of a map with the place of an event: its pin, or else a search for its address. None without both."""
    if event.latitude is not None and event.longitude is not None:
        pin = urlencode({"mlat": f"{event.latitude:.6f}", "mlon": f"{event.longitude:.6f}"})
        return f"{MAP_SITE}/?{pin}#map=17/{event.latitude:.5f}/{event.longitude:.5f}"
    if event.address:
        return f"{MAP_SITE}/search?query={quote(one_line(joined_lines(event.address), 500), safe='')}"
    return None


def _next_occurrence(content: EventContent) -> dt.datetime | None:
    """The next date of a recurring event; None if it does not recur."""
    event = content.event
    if event.recurrence_frequency == "none" or event.cancelled_at or content.recurs_from is None:
        return None
    after = max(event.datetime, content.now)
    frequency, interval = event.recurrence_frequency, event.recurrence_interval
    return next_occurrence_at(content.recurs_from, frequency, interval, after, zone(event.timezone))
