"""The published events of an organizer as calendar and RSS, and one event as a calendar file.

`/organizers/<slug>/events.ics` and `.rss` have at most 200 events. Calendars also get those of the last 30 days, and
cancelled ones, marked as cancelled. `/events/<event_id>/calendar.ics` has one.
"""

import asyncio
import re
from email.utils import format_datetime
from hashlib import sha256
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec

from holdfast.events.pages.model import EventContent, FeedContent, FeedEvent, ReadEvent, ReadFeed
from holdfast.events.pages.organizer_page import checked_slug
from holdfast.events.paths import event_path, id_of, organizer_path
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.events.texts.outbound_texts import without_web_addresses
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.answers import FEED, LIVE
from holdfast.kit.http.handler import NOSNIFF, Access, Header, Reply, Request
from holdfast.kit.mail.message import joined_lines
from holdfast.kit.operations.runner import RunOperation
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

CALENDARS = cache_bound("Calendars and feeds of organizers", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


class CalendarFile:
    """Answers requests for the calendar files of events. `read` reads what the page of an event shows."""

    access = Access("event_calendar")

    def __init__(self, settings: Settings, read: RunOperation) -> None:
        self._settings = settings
        self._read = read

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The calendar file of the event in the address. Raises `not_found`."""
        id = id_of(request.fields["event_id"])
        content: EventContent = await self._read(caller, ReadEvent(event_id=id))
        texts, is_confirmed = SITE.texts(language_of(request)), content.organizer_name is not None
        event = without_web_addresses(content.event, texts.gettext("(see the event's page)"), is_confirmed=is_confirmed)
        url = self._settings.base_url + event_path(event.organizer_slug, event.id)
        method = "CANCEL" if event.cancelled_at else "PUBLISH"
        organizer = content.organizer_name or texts.gettext("Unconfirmed organizer")
        from holdfast.events.events.calendar_file import calendar_file  # icalendar takes 3 MB

        file = calendar_file(event, self._settings, url=url, stamp=content.now, method=method, organizer=organizer)
        headers = [
            LIVE,
            (b"content-disposition", f'attachment; filename="event-{event.id}.ics"'.encode()),
        ]
        return Reply(200, file, headers, b"text/calendar; charset=utf-8")


class OrganizerFeeds:
    """Answers requests for the feeds of organizers. `read` reads their content."""

    access = Access("organizer_feed")

    def __init__(self, settings: Settings, read: RunOperation) -> None:
        self._settings = settings
        self._read = read
        self._calendars = PageCache(CALENDARS)

    async def calendar(self, caller: Caller, request: Request) -> Reply:
        """The feed as a calendar. Raises `not_found`."""
        language, content = await self._content(caller, request)
        # Without minutes, so that the file changes when an event does, and else once an hour.
        content.now = content.now.replace(minute=0, second=0, microsecond=0)
        key = language.code, sha256(msgspec.json.encode(content)).digest()
        # Writing 200 events takes a tenth of a second: other requests are answered meanwhile, and it is done once.
        page = await self._calendars.get(key, lambda: asyncio.to_thread(self._render_calendar, content, language))
        return page.reply(request)

    def _render_calendar(self, content: FeedContent, language: Language) -> CachedPage:
        from holdfast.events.events.calendar_file import calendar_feed  # icalendar takes 3 MB

        entries = [(event, self._url(content, event)) for event in content.events]
        file = calendar_feed(entries, self._settings, stamp=content.now, name=_name(content, language))
        return cached_page(
            file.decode(), _headers(content, language), b"text/calendar; charset=utf-8", cache_header=FEED
        )

    async def rss(self, caller: Caller, request: Request) -> Reply:
        """The feed as RSS: the events to come that are not cancelled, the newest first. Raises `not_found`."""
        language, content = await self._content(caller, request)
        name = _name(content, language)
        feed = Element("rss", version="2.0")
        channel = SubElement(feed, "channel")
        _add(channel, "title", name)
        _add(channel, "link", self._settings.base_url + organizer_path(content.slug))
        summary = SITE.texts(language).gettext("Events of %(name)s: dates, places and registration.")
        _add(channel, "description", summary % {"name": name})
        _add(channel, "language", language.code)
        to_come = [event for event in content.events if event.cancelled_at is None and event.datetime > content.now]
        for event in sorted(to_come, key=lambda event: (event.inserted_at, event.id), reverse=True):
            item = SubElement(channel, "item")
            _add(item, "title", one_line(event.title))
            _add(item, "link", self._url(content, event))
            _add(item, "guid", self._url(content, event))
            _add(item, "pubDate", format_datetime(event.inserted_at))
            period = language.period(event.datetime, event.ends_at, event.timezone or "UTC")
            venue = one_line(joined_lines(event.location_name or event.address or ""))
            _add(item, "description", f"{period} · {venue}" if venue else period)
        text = tostring(feed, encoding="unicode", xml_declaration=False)
        document = f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
        media_type = b"application/rss+xml; charset=utf-8"
        return cached_page(document, _headers(content, language), media_type, cache_header=FEED).reply(request)

    async def _content(self, caller: Caller, request: Request) -> tuple[Language, FeedContent]:
        language = language_of(request)
        content: FeedContent = await self._read(caller, ReadFeed(slug=checked_slug(request)))
        if content.name is None:
            replacement = SITE.texts(language).gettext("(see the event's page)")
            content.events = [without_web_addresses(event, replacement) for event in content.events]
        return language, content

    def _url(self, content: FeedContent, event: FeedEvent) -> str:
        return self._settings.base_url + event_path(content.slug, event.id)


def _name(content: FeedContent, language: Language) -> str:
    return one_line(content.name or SITE.texts(language).gettext("Unconfirmed organizer"))


def _headers(content: FeedContent, language: Language) -> list[Header]:
    headers = [NOSNIFF, (b"content-language", language.code.encode()), (b"vary", b"accept-language")]
    # As the pages of an organizer that is not confirmed, its feeds are not for search engines.
    return headers if content.name else [*headers, (b"x-robots-tag", b"noindex")]


def _add(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = _NOT_IN_XML.sub(" ", text)
