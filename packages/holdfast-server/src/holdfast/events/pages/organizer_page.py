"""The page of an organizer, `/organizers/<slug>`: its upcoming events, soonest first, and past ones apart.

The first page is rendered when something on it has changed, once in each language; others, further back in time or
ahead, for each request. What it shows is cached for a second, or until a notice of a change. So a crowd at one
organizer costs no database query.

The stream, `GET /organizers/{slug}/stream`, tells that something on the page has changed, and the page fetches itself
again. It is public. A change of an event that is not public is told only if it changes the page.
"""

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from itertools import groupby

import msgspec
from msgspec import Struct

from holdfast.events.events.model import CHANGE_CHANNEL
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages import sql
from holdfast.events.pages.accent_styles import branding_values
from holdfast.events.pages.cover import title_cover
from holdfast.events.pages.model import EventCard, OrganizerContent, ReadOrganizer
from holdfast.events.paths import organizer_path
from holdfast.events.photos.model import ImageAttributes, image_attributes
from holdfast.events.processor.currencies import digits
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.events.texts.rendered_text import one_line
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import ADMIN, Caller
from holdfast.kit.contract.client import address
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.event_streams import (
    EndOfStream,
    EventStream,
    Feed,
    StreamOwner,
    Streams,
    encode_notice,
    encode_retry,
)
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.language import LANGUAGES, Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import redirect, security_headers
from holdfast.kit.postgres.announced_changes import AnnouncedChanges
from holdfast.kit.postgres.group_commit import MAX_WAITING_CALLS, Batcher
from holdfast.kit.postgres.lookup_cache import LookupCache

MAX_ORGANIZERS = 500
"""The maximum number of cached organizers. What a page of one shows takes up to 30 kB."""


ORGANIZER_READS = Bound(
    name="Requests that wait for one read of an organizer's page",
    service="events",
    total=f"{MAX_WAITING_CALLS} for one organizer",
    tenant="its own",
    address="one for each of its connections",
    reserved="-",
    stranger="Nothing: one read answers all.",
)
ORGANIZERS = cache_bound("Organizers that pages show", "events", f"{MAX_ORGANIZERS}, for a second")

_SLUG = re.compile("[a-z0-9-]{3,100}")
_PLACES = {
    name: re.compile(rb"(?:^|&)%b=(-?[0-9]{1,18})-([1-9][0-9]{0,17})(?:&|$)" % name.encode())
    for name in ("after", "before")
}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

ORGANIZER_PAGES = cache_bound("Rendered pages of organizers", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


class VersionedOrganizer(Struct, frozen=True):
    """The content of the first page of an organizer, and a hash of it."""

    content: OrganizerContent
    version: bytes


class OrganizerCache:
    """The first pages of organizers, by slug. `read` reads one."""

    def __init__(self, database: Database, read: RunOperation) -> None:
        self._database = database
        self._read = read
        self._batchers: dict[str, Batcher[None, VersionedOrganizer]] = {}
        self._organizers = LookupCache(
            ORGANIZERS, database, ORGANIZER_CHANNEL, str, self._read_once, max_results=MAX_ORGANIZERS
        )

    async def get(self, slug: str) -> VersionedOrganizer:
        """The first page of an organizer, at most a second old and without an announced change. Raises `not_found`."""
        return await self._organizers.get(slug)

    @contextlib.contextmanager
    def forgetting(self) -> Generator[None]:
        """While the block lasts, drop pages as soon as a change of them is announced."""
        with self._organizers.forgetting(), self._database.listen(CHANGE_CHANNEL, self._forget_all):
            yield

    def _forget_all(self, payload: str) -> None:
        """Drop all pages after a change of what any page may show, which has an empty payload."""
        if not payload:
            self._organizers.forget("")

    async def _read_once(self, slug: str) -> VersionedOrganizer:
        """Read an organizer once for all requests that wait. None of them gets what was read before it came."""
        batcher = self._batchers.get(slug)
        if batcher is None:
            batcher = self._batchers[slug] = Batcher(ORGANIZER_READS, "read_organizer", partial(self._read_for, slug))
            batcher.on_idle = partial(self._batchers.pop, slug)
        return await batcher.submit(None)

    async def _read_for(self, slug: str, requests: Sequence[None]) -> Sequence[VersionedOrganizer]:
        content: OrganizerContent = await self._read(ADMIN, ReadOrganizer(slug=slug))
        organizer = VersionedOrganizer(content, sha256(msgspec.json.encode(content)).digest())
        return [organizer] * len(requests)


class OrganizerPage:
    """Answers requests for the pages of organizers.

    organizers    the cache of first pages
    read          reads the content of other pages
    """

    access = Access("organizer_page")

    def __init__(self, settings: Settings, organizers: OrganizerCache, read: RunOperation) -> None:
        self._settings = settings
        self._organizers = organizers
        self._read = read
        self._pages = PageCache(ORGANIZER_PAGES)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The page of the organizer in the address. Raises `not_found`."""
        language = language_of(request)
        slug = checked_slug(request)
        before = list_position_in(request.query, "before")
        after = None if before else list_position_in(request.query, "after")
        if before or after:
            content = await self._read(caller, ReadOrganizer(slug=slug, after=after, before=before))
            return self._render(language, content, is_past=before is not None).reply(request)
        organizer = await self._organizers.get(slug)

        async def render() -> CachedPage:
            return self._render(language, organizer.content)

        return (await self._pages.get((slug, organizer.version, language), render)).reply(request)

    async def find(self, caller: Caller, request: Request) -> Reply:
        """Redirect the address of an event without its id to the page of the organizer. Raises `not_found`."""
        return redirect(language_of(request).at(organizer_path(checked_slug(request))))

    def _render(self, language: Language, organizer: OrganizerContent, *, is_past: bool = False) -> CachedPage:
        slug = organizer.slug
        address = self._settings.base_url + organizer_path(slug)
        content = SITE.render(
            "pages/organizer.html",
            language=language,
            organizer=organizer,
            name=one_line(organizer.name or ""),
            **branding_values(organizer.accent, organizer.logo, self._settings),
            is_confirmed=organizer.name is not None,
            address=language.at(address),
            alternates={code: f"{address}?lang={code}" for code in LANGUAGES} | {"x-default": address},
            is_past=is_past,
            earlier=list_position_of(organizer.past[-1]) if organizer.more_past else None,
            later=list_position_of(organizer.events[-1]) if organizer.more else None,
            months=_months(organizer.past if is_past else organizer.events, language),
            photo=partial(card_photo, self._settings, organizer),
            cover=title_cover,
            digits=digits,
        )
        return cached_page(content, security_headers(language, images=photo_origin(self._settings)))


def card_photo(settings: Settings, organizer: OrganizerContent, card: EventCard) -> ImageAttributes | None:
    """The photo of an event in the list of its organizer."""
    return image_attributes(card.photo, organizer.sizes.get(card.photo), settings) if card.photo else None


def _months(cards: Sequence[EventCard], language: Language) -> list[tuple[str, list[EventCard]]]:
    """The events by the month in which they begin, in their own zones."""
    by_month = groupby(cards, lambda card: language.month(card.datetime, card.timezone or "UTC"))
    return [(month, list(of_month)) for month, of_month in by_month]


def checked_slug(request: Request) -> str:
    """The slug in the path of a request. Raises `not_found` for one that no organizer can have."""
    slug = request.fields["slug"]
    if not _SLUG.fullmatch(slug):
        raise NOT_FOUND()
    return slug


def list_position_of(card: EventCard) -> str:
    """The place of an event in the list, as the query parameters `after` and `before`."""
    return f"{(card.datetime - _EPOCH) // _MICROSECOND}-{card.id}"


def list_position_in(query: bytes, name: str) -> tuple[dt.datetime, int] | None:
    """The place in the list that a parameter of a query names. None if it names none."""
    match = _PLACES[name].search(query)
    try:
        return (_EPOCH + int(match[1]) * _MICROSECOND, int(match[2])) if match else None
    except OverflowError:
        return None


class WatchedOrganizer(Struct):
    """An organizer whose page is read.

    feed       tells its readers of changes
    version    the version of the page when it was read last; None: there was no such page
    """

    slug: str
    feed: Feed[None]
    version: bytes | None


class LiveOrganizers:
    """The organizers whose pages are read in this process, by id. `pages` has the first page of each."""

    def __init__(self, database: Database, runner: Runner, pages: OrganizerCache) -> None:
        self._database = database
        self._runner = runner
        self._pages = pages
        self._watched: dict[int, WatchedOrganizer] = {}
        self._changes = AnnouncedChanges(
            database, [CHANGE_CHANNEL], lambda _: bool(self._watched), self._publish_changes
        )
        self.listening: Callable[[], AbstractContextManager[None]] = self._changes.listening

    def routes(self, limits: Limits, streams: Streams) -> Sequence[Route]:
        """The route of the streams."""

        async def answer(caller: Caller, request: Request) -> Reply:
            return await self._open(caller, request, streams)

        handler = Handler(Access("organizer_stream"), limits, answer, envelope(Problem.body), methods=("GET",))
        return [Route("/organizers/{slug}/stream", handler)]

    async def _open(self, caller: Caller, request: Request, streams: Streams) -> Reply:
        """Open a stream. Raises `not_found`, `rate_limited`, and `service_unavailable`."""
        owners: Mapping[StreamOwner, object] = {"address": address(request.scope)}
        streams.require_room(owners)
        slug = checked_slug(request)
        organizer = await self._runner.read(caller, lambda reader: sql.find_organizer(reader, slug))
        if organizer is None:
            raise NOT_FOUND(f"No organizer has the slug {slug}.")
        version = await self._find_version(slug)
        watched = self._watched.setdefault(organizer.id, WatchedOrganizer(slug, Feed(), version))
        feed = watched.feed
        position, start = feed.position, encode_retry()

        async def pending() -> bytes:
            nonlocal position, start
            if self._watched.setdefault(organizer.id, watched) is not watched:
                raise EndOfStream  # the feed was dropped before it had this reader; the browser opens the stream again
            chunk = start + (encode_notice("changed", feed) if feed.position > position else b"")
            position, start = feed.position, b""
            return chunk

        return EventStream(200, streams=streams, name="organizer", feed=feed, pending=pending, owners=owners)

    async def _publish_changes(self, event_ids: Set[int] | None) -> None:
        """Publish that events have changed. None: any event may have."""
        self._watched = {id: organizer for id, organizer in self._watched.items() if organizer.feed.has_readers}
        owners = dict.fromkeys(self._watched, False)
        if event_ids is not None and owners:
            owner_ids = [*owners]
            owners = await self._database.read(lambda reader: sql.find_owners(reader, event_ids, owner_ids))
        for id, has_public_event in owners.items():
            if organizer := self._watched.get(id):
                version = await self._find_version(organizer.slug)
                # A page further back in time shows public events that are not on the first one.
                is_changed = version != organizer.version or has_public_event
                organizer.version = version
                if is_changed:
                    organizer.feed.publish(organizer.feed.position + 1, None)

    async def _find_version(self, slug: str) -> bytes | None:
        """The version of the first page of an organizer; None if it has none."""
        try:
            return (await self._pages.get(slug)).version
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return None
