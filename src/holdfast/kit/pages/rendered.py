"""Pages that were rendered, kept for as long as nothing changes that they show."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from hashlib import sha256
from typing import Any

from cachetools import LRUCache
from msgspec import Struct
from starlette.routing import BaseRoute, Route

from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Header, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import HTML, Site, secured

KEPT = 32_000_000
"""The most bytes of pages that a process keeps."""


class Page(Struct, frozen=True):
    """A page, its headers, and the tag by which browsers ask whether they have it already."""

    content: bytes
    headers: Sequence[Header]
    etag: bytes

    def reply(self, request: Request) -> Reply:
        """The page, or a short answer to a browser that has it already."""
        if self.etag in request.headers.get(b"if-none-match", b""):
            return Reply(304, headers=self.headers)
        return Reply(200, self.content, self.headers, HTML)


def page(content: str, headers: Sequence[Header]) -> Page:
    """A page that browsers keep, and ask about each time before they show it again."""
    encoded = content.encode()
    etag = f'"{sha256(encoded).hexdigest()[:32]}"'.encode()
    others = [each for each in headers if each[0] != b"cache-control"]
    return Page(encoded, (*others, (b"cache-control", b"no-cache"), (b"etag", etag)), etag)


class Pages:
    """Renders each page once, for all who ask for it at the same time and for those who come later.

    most    how many bytes of pages are kept
    """

    def __init__(self, most: int = KEPT) -> None:
        self._kept: LRUCache[Hashable, Page] = LRUCache(most, lambda page: len(page.content) + 2_000)
        self._rendering: dict[Hashable, asyncio.Task[Page]] = {}

    async def get(self, key: Hashable, render: Callable[[], Awaitable[Page]]) -> Page:
        """The page with a key, which has everything in it that the page depends on."""
        if (kept := self._kept.get(key)) is not None:
            return kept
        task = self._rendering.get(key)
        if task is None:
            task = self._rendering[key] = asyncio.create_task(self._render(key, render), name="render a page")
            task.add_done_callback(_seen)
        # If one of those who wait goes away, the others still get the page.
        return await asyncio.shield(task)

    async def _render(self, key: Hashable, render: Callable[[], Awaitable[Page]]) -> Page:
        try:
            page = await render()
            if len(page.content) + 2_000 <= self._kept.maxsize:
                self._kept[key] = page
            return page
        finally:
            del self._rendering[key]


def _seen(task: asyncio.Task[Page]) -> None:
    """An error that nobody waits for any more is not reported as one that nobody looked at."""
    if not task.cancelled():
        task.exception()


def constant(site: Site, path: str, template: str, limits: Limits, name: str, **values: Any) -> BaseRoute:
    """The route of a page that says the same to everybody, in each language.

    name    its name in logs and metrics
    """
    pages = Pages()

    async def answer(_: Caller, request: Request) -> Reply:
        language = language_of(request)

        async def render() -> Page:
            return page(site.render(template, language=language, **values), secured(language))

        return (await pages.get(language, render)).reply(request)

    return Route(path, Handler(Access(name), limits, answer, site.refuse))
