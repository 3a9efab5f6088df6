"""The page of an event: `/organizers/<slug>/events/<event_id>`.

The page is rendered when the version of the event has changed. Versions are cached too, so a crowd at one event costs
no database query.
"""

import datetime as dt
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from cachetools import LRUCache
from markupsafe import Markup

from holdfast.events.events import text
from holdfast.events.events.model import EventRow
from holdfast.events.events.recurrence import next_occurrence_at
from holdfast.events.events.time_zones import zone
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages.accent_styles import branding_values
from holdfast.events.pages.cover import cover_path, cover_svg, title_cover
from holdfast.events.pages.event.cache import LinkedEvent
from holdfast.events.pages.event.structured_data import event_json_ld
from holdfast.events.pages.model import EventContent, ReadEvent
from holdfast.events.pages.organizer_page import OrganizerCache, VersionedOrganizer, card_photo
from holdfast.events.pages.registration.form import form_of, half_hour_number
from holdfast.events.paths import event_path, id_of, organizer_path, released_path
from holdfast.events.photos.model import image_attributes, urls
from holdfast.events.pricing.model import PricePoint
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.links import SIGNATURE_DIGITS
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.events.texts.outbound_texts import OMISSION, outbound_text, without_web_addresses
from holdfast.events.texts.rendered_text import one_line, without_links
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Access, Header, Reply, Request
from holdfast.kit.mail.message import joined_lines
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import RunOperation
from holdfast.kit.pages.chart import Chart, draw_steps
from holdfast.kit.pages.language import LANGUAGES, Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import HTML, redirect, security_headers
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.security.service_secret import HmacSigner, Secret
from holdfast_verify.formats.beacon import CHAIN
from holdfast_verify.formats.drawn_order import DRAWN_ORDER

MAX_FOLLOWING = 3
"""The most next events on the page of an event that is cancelled or has begun."""

MAP_SITE = "https://www.openstreetmap.org"

_RELEASE_TOKEN = b"queue_token="
"""How the token of a waiting room begins in a query."""


NOT_INDEXED: Header = (b"x-robots-tag", b"noindex, nofollow")
"""Tells search engines to keep nothing of a page."""

MAX_CONTENT_BYTES = 8_000_000
"""The maximum size of the cached contents of pages, in bytes."""

EVENT_PAGES = cache_bound("Rendered pages of events", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")
EVENT_CONTENTS = cache_bound(
    "Contents of the pages of events, for all languages",
    "events",
    f"{MAX_CONTENT_BYTES // 1_000_000} MB",
    lost="is read again",
)


def previews(secret: Secret) -> HmacSigner:
    """Signs the ids of events whose drafts are shown to readers with the link."""
    return secret.signer("event previews", SIGNATURE_DIGITS)


def preview_path(secret: Secret, event_id: int) -> str:
    """The path of the preview of a draft."""
    return f"/events/{event_id}/preview/{previews(secret).sign(str(event_id))}"


class EventPage:
    """Answers requests for the pages of events.

    linked_events    the cache of the events that links show
    organizers       the cache of the pages of organizers
    read             reads the content of the page of an event
    """

    access = Access("event_page")

    def __init__(
        self,
        database: Database,
        limits: Limits,
        linked_events: LookupCache[int, LinkedEvent],
        organizers: OrganizerCache,
        read: RunOperation,
    ) -> None:
        self._database = database
        self._settings = database.resources.settings
        self._secret = database.resources.secret
        self._limits = limits
        self._organizers = organizers
        self._linked_events = linked_events
        self._read = read
        self._pages = PageCache(EVENT_PAGES)
        self._contents: LRUCache[Hashable, EventContent] = LRUCache(MAX_CONTENT_BYTES, _size)

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
        following = await self._find_following(linked_event)
        version = (linked_event.version, following.version if following else b"")
        key = (linked_event.event.id, version, linked_event.is_own_event, language, half_hour_number())

        async def render() -> CachedPage:
            content = await self._read_content(caller, linked_event)
            page = await self._render(language, content, is_own_event=linked_event.is_own_event, following=following)
            return cached_page(page, self._headers(language))

        return (await self._pages.get(key, render)).reply(request)

    async def preview(self, caller: Caller, request: Request) -> Reply:
        """The page of a draft as it will be, for readers with its link. Raises `not_found` if the link is wrong.

        A published event has its page, so the link leads there.
        """
        language, event_id = language_of(request), id_of(request.fields["event_id"])
        if not previews(self._secret).accepts(str(event_id), request.fields["signature"]):
            await self._limits.hit("wrong links", caller.name)
            raise NOT_FOUND()
        content: EventContent = await self._read(caller, ReadEvent(event_id=event_id, is_preview=True))
        if content.event.is_public:
            return redirect(language.at(event_path(content.event.organizer_slug, event_id)))
        page = await self._render(language, content, is_preview=True)
        return Reply(200, page.encode(), [*self._headers(language), NOT_INDEXED], HTML)

    async def find(self, caller: Caller, request: Request) -> Reply:
        """Redirect an address without the organizer to the page of the event. Raises `not_found`."""
        linked_event = await self._linked_events.get(id_of(request.fields["event_id"]))
        path = event_path(linked_event.slug, linked_event.requested_id)
        return redirect(language_of(request).at(path))

    async def with_form(
        self, caller: Caller, language: Language, linked_event: LinkedEvent, status: int, **form_values: Any
    ) -> Reply:
        """The page with a form that was sent and refused. `form_values` are keyword arguments of `form_of`."""
        content = await self._read_content(caller, linked_event)
        following = await self._find_following(linked_event)
        page = await self._render(
            language, content, is_own_event=linked_event.is_own_event, following=following, **form_values
        )
        return Reply(status, page.encode(), self._headers(language), HTML)

    async def _find_following(self, linked_event: LinkedEvent) -> VersionedOrganizer | None:
        """The events of the organizer of an event that is cancelled or has begun. None for an event that goes on."""
        if linked_event.event.status not in ("cancelled", "expired"):
            return None
        try:
            return await self._organizers.get(linked_event.event.organizer_slug)
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return None  # the organizer has been erased

    async def _read_content(self, caller: Caller, linked_event: LinkedEvent) -> EventContent:
        """The content of the page, read once for all languages. It has the keys of pages, so it lasts as long."""
        key = (linked_event.event.id, linked_event.version, half_hour_number())
        content = self._contents.get(key)
        if content is None:
            content = await self._read(caller, ReadEvent(event_id=linked_event.event.id))
            if _size(content) <= MAX_CONTENT_BYTES:
                self._contents[key] = content
        return content

    def _headers(self, language: Language) -> list[Header]:
        return security_headers(language, images=photo_origin(self._settings))

    async def _render(
        self,
        language: Language,
        content: EventContent,
        *,
        is_own_event: bool = True,
        is_preview: bool = False,
        following: VersionedOrganizer | None = None,
        **form_values: Any,
    ) -> str:
        settings, event = self._settings, content.event
        body = await text.find_or_render(
            self._database, event, content.text, is_proved=content.organizer_name is not None
        )
        images = urls(event.image_keys, settings)
        organizer = organizer_path(event.organizer_slug)
        address = settings.base_url + event_path(event.organizer_slug, event.id)
        # Until the organizer has confirmed its address, our pages show no name, logo or link that it has chosen.
        name = content.organizer_name
        html = body.html if name is not None else without_links(body.html)
        form = form_of(
            event,
            settings,
            self._secret,
            language,
            refund_days=content.refund_days,
            queue=None if is_preview else content.queue,
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
            **self._outbound_values(event, body.summary, name, images, address),
            "organizer_name": name,
            "is_confirmed": name is not None,
            "organizer_path": language.at(organizer),
            **branding_values(content.accent, content.logo, settings),
            "body": Markup(html),  # noqa: S704 - it was cleaned when it was rendered
            "photos": [image_attributes(key, content.sizes.get(key), settings) for key in event.image_keys],
            "originals": images,
            "cover": cover_svg(one_line(event.title)),
            "address": language.at(address),
            "alternates": {code: f"{address}?lang={code}" for code in LANGUAGES} | {"x-default": address},
            "is_running": event.is_running(content.now),
            "moved": not is_own_event,
            "is_preview": is_preview,
            "page": language.at(
                released_path(event.id)
                if form_values.get("is_released")
                else event_path(event.organizer_slug, event.id)
            ),
            "form": form,
            "zone": event.timezone or "UTC",
            "digits": digits(event.currency),
            "left": event.capacity - event.registered_count,
            "waitlist_left": max(0, event.waitinglist_capacity - event.waitlisted_count),
            "interval": max(1, event.recurrence_interval),
            "next": _next_occurrence(content),
            "map": map_link(event),
            **_following_values(following, settings),
            "history": price_chart(content.prices, min(content.now, event.datetime)),
            "price_text": partial(language.money, currency=event.currency, digits=digits(event.currency)),
        }
        return SITE.render("pages/event/event.html", language=language, **values)

    def _outbound_values(
        self, event: EventRow, summary: str, organizer_name: str | None, images: list[str], address: str
    ) -> dict[str, Any]:
        """What other programs show of the page: its title, its summary, a picture and its structured data.

        organizer_name    None: the organizer has not confirmed its address
        images            the addresses of the photos
        """
        base_url, is_confirmed = self._settings.base_url, organizer_name is not None
        outside = without_web_addresses(event, OMISSION, is_confirmed=is_confirmed)
        summary = outbound_text(summary, is_confirmed=is_confirmed)
        title = one_line(outside.title)
        pictures = (images or [base_url + cover_path(event.id, title)]) if is_confirmed else []
        organizer = (
            (organizer_name, base_url + organizer_path(event.organizer_slug)) if organizer_name is not None else None
        )
        return {
            "title": title,
            "summary": summary,
            "preview": next(iter(pictures), None),
            "structured": event_json_ld(
                outside, address=address, organizer=organizer, summary=summary, images=pictures
            ),
        }


def _size(content: EventContent) -> int:
    """About how many bytes of memory a content takes."""
    html = content.text.html if content.text else ""
    return 8_000 + 2 * (len(content.event.body) + len(html)) + 200 * len(content.prices)


def _following_values(following: VersionedOrganizer | None, settings: Settings) -> dict[str, Any]:
    """The cards of the next events of the organizer, full ones last."""
    events = (
        sorted(following.content.events, key=lambda event: not (event.left or event.waitlist_left)) if following else []
    )
    return {
        "following": events[:MAX_FOLLOWING],
        "organizer": following.content if following else None,
        "photo": partial(card_photo, settings, following.content) if following else None,
        "card_cover": title_cover,
        "card_digits": digits,
    }


def price_chart(prices: Sequence[PricePoint], until: dt.datetime) -> Chart | None:
    """The chart of a price, oldest first, until a moment. None if it has never changed."""
    if len({point.price for point in prices}) < 2:
        return None
    return draw_steps([(point.timestamp, point.price) for point in prices], until)


class PlacedEvent(Protocol):
    """The data of an event that say where it is."""

    @property
    def latitude(self) -> float | None: ...
    @property
    def longitude(self) -> float | None: ...
    @property
    def address(self) -> str | None: ...


def map_link(event: PlacedEvent) -> str | None:
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
