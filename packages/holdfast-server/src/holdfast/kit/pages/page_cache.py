"""A cache of rendered pages. Its keys contain everything that a page depends on."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from hashlib import sha256
from typing import Any

from cachetools import LRUCache
from msgspec import Struct

from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.http.answers import LIVE
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import HTML, Site, security_headers

MAX_CACHE_BYTES = 32_000_000
"""The maximum size of the cached pages of a process, in bytes."""

FIXED_PAGES = cache_bound(
    "Rendered pages without content of tenants", "both", f"{MAX_CACHE_BYTES // 1_000_000} MB for each page"
)

CACHE_TTL_SECONDS = 3600
"""Seconds that a page is cached. No request has the key of an outdated page; the cache drops it when it gets full."""

CACHED_PAGES = cache_bound("Rendered pages", "both", f"{MAX_CACHE_BYTES // 1_000_000} MB for each kind of page")

NO_PAGE: tuple[None, float] = (None, 0.0)


class CachedPage(Struct, frozen=True):
    """A rendered page, its headers, and the ETag by which browsers revalidate it."""

    content: bytes
    headers: Sequence[Header]
    etag: bytes
    media_type: bytes = HTML

    def reply(self, request: Request) -> Reply:
        """The page, or 304 for a browser that already has it."""
        if self.etag in request.headers.get(b"if-none-match", b""):
            return Reply(304, headers=self.headers)
        return Reply(200, self.content, self.headers, self.media_type)


def cached_page(
    content: str, headers: Sequence[Header], media_type: bytes = HTML, *, cache_header: Header = LIVE
) -> CachedPage:
    """A page, or another text, that browsers cache, and revalidate each time they show it again.

    cache_header    for how long caches in front of the service give it without asking
    """
    encoded = content.encode()
    etag = f'"{sha256(encoded).hexdigest()[:32]}"'.encode()
    others = [header for header in headers if header[0] != b"cache-control"]
    return CachedPage(encoded, (*others, cache_header, (b"etag", etag)), etag, media_type)


class PageCache:
    """Renders each page once, for concurrent and later requests.

    bound        what is limited, for the page of all bounds
    max_bytes    the maximum size of all cached pages in bytes
    """

    def __init__(self, bound: Bound, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.bound = bound
        # Pages with the times at which they end. A `TTLCache` would look for ended ones at each request.
        self._pages: LRUCache[Hashable, tuple[CachedPage, float]] = LRUCache(max_bytes, lambda entry: _size(entry[0]))
        self._rendering: dict[Hashable, asyncio.Task[CachedPage]] = {}

    async def get(self, key: Hashable, render: Callable[[], Awaitable[CachedPage]]) -> CachedPage:
        """The page with a key. The key contains everything that the page depends on."""
        page, ends_at = self._pages.get(key, NO_PAGE)
        if page and time.monotonic() < ends_at:
            return page
        task = self._rendering.get(key)
        if task is None:
            task = self._rendering[key] = create_shared_task(self._render(key, render), name="render a page")
            task.add_done_callback(_retrieve_error)
        # If one waiting request is cancelled, the others still get the page.
        return await asyncio.shield(task)

    async def _render(self, key: Hashable, render: Callable[[], Awaitable[CachedPage]]) -> CachedPage:
        try:
            page = await render()
            if _size(page) <= self._pages.maxsize:
                self._pages[key] = page, time.monotonic() + CACHE_TTL_SECONDS
            return page
        finally:
            del self._rendering[key]


def _size(page: CachedPage) -> int:
    return len(page.content) + 2_000


def _retrieve_error(task: asyncio.Task[CachedPage]) -> None:
    """Retrieve the error of a task, so that asyncio does not log it as never retrieved if no request waits any more."""
    if not task.cancelled():
        task.exception()


def constant_page(
    site: Site, path: str, template: str, limits: Limits, name: str, *, forms: str = "", **values: Any
) -> Route:
    """The route of a page that is the same for every visitor, in each language.

    name     its name in logs and metrics
    forms    another origin to which its forms lead, for `form-action` of the policy
    """
    pages = PageCache(FIXED_PAGES)

    async def answer(_: Caller, request: Request) -> Reply:
        language = language_of(request)

        async def render() -> CachedPage:
            return cached_page(
                site.render(template, language=language, **values), security_headers(language, forms=forms)
            )

        return (await pages.get(language, render)).reply(request)

    return Route(path, Handler(Access(name), limits, answer, site.refuse))
