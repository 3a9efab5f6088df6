"""The page of an organizer, `/organizers/<slug>`: its upcoming events, soonest first, and past ones apart.

The first page is rendered when something on it has changed; others, further back in time or ahead, for each request.
"""

import datetime as dt
import re
from collections.abc import Sequence
from functools import partial
from itertools import groupby

from holdfast.events.images.model import ImageAttributes, image_attributes
from holdfast.events.markdown import one_line
from holdfast.events.pages.cover import title_cover
from holdfast.events.pages.look import look_values, origin
from holdfast.events.pages.model import EventCard, OrganizerContent, ReadOrganizer
from holdfast.events.pages.organizer_cache import OrganizerCache
from holdfast.events.paths import organizer_path
from holdfast.events.processor.currencies import digits
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Access, Reply, Request
from holdfast.kit.pages.language import LANGUAGES, Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import redirect, security_headers
from holdfast.kit.running.runner import Run

_SLUG = re.compile("[a-z0-9-]{3,100}")
_PLACES = {
    name: re.compile(rb"(?:^|&)%b=(-?[0-9]{1,18})-([1-9][0-9]{0,17})(?:&|$)" % name.encode())
    for name in ("after", "before")
}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


ORGANIZER_PAGES = cache_bound(
    "Rendered pages of organizers", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB in a process"
)


class OrganizerPage:
    """Answers requests for the pages of organizers.

    organizers    the cache of first pages
    read          reads the content of other pages
    """

    access = Access("organizer_page")

    def __init__(self, settings: Settings, organizers: OrganizerCache, read: Run) -> None:
        self._settings = settings
        self._organizers = organizers
        self._read = read
        self._pages = PageCache(ORGANIZER_PAGES)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The page of the organizer in the address. Raises `not_found`."""
        language = language_of(request)
        slug = checked_slug(request)
        before = place_in(request.query, "before")
        after = None if before else place_in(request.query, "after")
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
            **look_values(organizer.accent, organizer.logo, self._settings),
            is_confirmed=organizer.name is not None,
            address=language.at(address),
            alternates={code: f"{address}?lang={code}" for code in LANGUAGES} | {"x-default": address},
            is_past=is_past,
            earlier=place_of(organizer.past[-1]) if organizer.more_past else None,
            later=place_of(organizer.events[-1]) if organizer.more else None,
            months=_months(organizer.past if is_past else organizer.events, language),
            photo=partial(self._photo, organizer),
            cover=title_cover,
            digits=digits,
        )
        return cached_page(content, security_headers(language, images=origin(self._settings)))

    def _photo(self, organizer: OrganizerContent, card: EventCard) -> ImageAttributes | None:
        return image_attributes(card.photo, organizer.sizes.get(card.photo), self._settings) if card.photo else None


def _months(cards: Sequence[EventCard], language: Language) -> list[tuple[str, list[EventCard]]]:
    """The events by the month in which they begin, in their own zones."""
    by_month = groupby(cards, lambda card: language.month(card.datetime, card.timezone or "UTC"))
    return [(month, list(of_month)) for month, of_month in by_month]


def checked_slug(request: Request) -> str:
    """The slug in the path of a request. Raises `not_found` for one that no organizer can have."""
    slug = request.scope["path_params"]["slug"]
    if not _SLUG.fullmatch(slug):
        raise NOT_FOUND()
    return slug


def place_of(card: EventCard) -> str:
    """The place of an event in the list, as the query parameters `after` and `before`."""
    return f"{(card.datetime - _EPOCH) // _MICROSECOND}-{card.id}"


def place_in(query: bytes, name: str) -> tuple[dt.datetime, int] | None:
    """The place in the list that a parameter of a query names. None if it names none."""
    match = _PLACES[name].search(query)
    try:
        return (_EPOCH + int(match[1]) * _MICROSECOND, int(match[2])) if match else None
    except OverflowError:
        return None
