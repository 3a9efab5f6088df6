"""A theme's page with the block's script, and a stand-in for the service whose behaviour a test chooses."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from html import escape
from typing import Any

from playwright.async_api import Browser, Page, Request, expect
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.browser.stock_page import VISIBLE, StockPage
from tests.helpers.events_service import eventually
from tests.helpers.node import ROOT
from tests.helpers.serving import bind_port, serve_app

ASSETS = ROOT / "extensions" / "live-stock" / "assets"
STEP = 4_000
"""Milliseconds. The script waits 10 seconds for an answer."""

ONE, SIX, OTHER = (f"gid://shopify/ProductVariant/{number}" for number in (1, 6, 9))

TEXTS = {
    "in": "[n] in stock",
    "plenty": "more than [n]",
    "low": "only [n]",
    "out": "sold out",
    "back": "back: [n]",
    "old": "[n] at [time]",
}
FORM = """<form action="/cart/add">
<input type="hidden" name="product-id" value="7"><input type="hidden" name="id" value="1"></form>"""


def block(lines: str = "", **data: str) -> str:
    """The HTML of a block. `data` are its attributes, besides those that it has by default."""
    defaults = {
        "proxy": "/apps/holdfast",
        "product": "7",
        "first": ONE,
        "low-at": "5",
        "most": "0",
        "always": "",
        **TEXTS,
    }
    attributes = " ".join(
        f'data-{name.replace("_", "-")}="{escape(value)}"' for name, value in {**defaults, **data}.items()
    )
    lines = lines or f'<p data-variant="{ONE}" data-follows data-state=""></p>'
    return f'<live-stock {attributes}>{lines}<p role="status"></p></live-stock>'


WATCHED = """
  Object.assign(window, { live: false, failed: 0 });
  window.EventSource = class extends EventSource {
    constructor(address) {
      super(address);
      live = false;
      this.addEventListener("snapshot", () => (live = true));
      this.addEventListener("error", () => ((live = false), (failed += 1)));
    }
  };
"""
"""Says what became of the streams of a page: whether the last one tells, and how many have failed."""


class AvailabilityDouble:
    """What the page asks.

    numbers     what can be sold, by variant
    answer      the answer instead of the numbers, with its status; None: the numbers
    streams     what becomes of a stream: it is `open`, `refused`, or `silent`
    requests    the paths that were asked for, each with its query
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {ONE: 50, SIX: 8}
        self.answer: tuple[int, str] | None = None
        self.streams = "open"
        self.requests: list[str] = []
        self.html = ""
        self._open: list[asyncio.Queue[bytes | None]] = []
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/live-stock.js", self._script),
                Route("/apps/holdfast/availability", self._availability),
                Route("/stream", self._stream),
            ]
        )

    def times(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(url.partition("?")[0] == path for url in self.requests)

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._open)

    def tell(self, removed: tuple[str, ...] = (), **changed: int) -> None:
        """Change numbers, and tell all streams: `tell(one=44)`."""
        variants = {{"one": ONE, "six": SIX}[name]: number for name, number in changed.items()}
        self.numbers = {gid: number for gid, number in {**self.numbers, **variants}.items() if gid not in removed}
        self._say("change", {"version": 2, "variants": variants, "removed": [*removed]})

    def end(self) -> None:
        """End all streams."""
        for stream in self._open:
            stream.put_nowait(None)

    def _say(self, name: str, body: Any) -> None:
        for stream in self._open:
            stream.put_nowait(_event(name, body))

    async def _page(self, _: HttpRequest) -> Response:
        return HTMLResponse(f'<!doctype html><html lang="de"><title>x</title><body>{self.html}')

    async def _script(self, _: HttpRequest) -> Response:
        return Response((ASSETS / "live-stock.js").read_bytes(), media_type="text/javascript")

    async def _availability(self, request: HttpRequest) -> Response:
        self.requests.append(request.url.path)
        if self.answer:
            return Response(self.answer[1], self.answer[0], media_type="application/json")
        token = len(self.requests)
        return JSONResponse(
            {"shared_inventory_id": 1, "variants": self.numbers, "stream_url": f"/stream?token={token}"}
        )

    async def _stream(self, request: HttpRequest) -> Response:
        self.requests.append(f"{request.url.path}?{request.url.query}")
        if self.streams == "refused":
            return JSONResponse({"error": "rate_limited"}, 429)
        return StreamingResponse(self._events(self.streams), media_type="text/event-stream")

    async def _events(self, kind: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._open.append(queue)
        try:
            yield b"retry: 3000\n\n"
            if kind == "open":
                yield _event("snapshot", {"version": 1, "variants": self.numbers})
            while (message := await queue.get()) is not None:
                yield message
        finally:
            self._open.remove(queue)


def _event(name: str, body: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()


class Theme(StockPage):
    """A buyer's view of the page."""

    def __init__(self, page: Page, service: AvailabilityDouble, address: str) -> None:
        super().__init__(page, page.locator("[data-variant]").first)
        self.service = service
        self.address = address
        self._waiting: set[Request] = set()
        page.on("request", self._begun)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def _begun(self, request: Request) -> None:
        if request.resource_type == "fetch":
            self._waiting.add(request)

    def _ended(self, request: Request) -> None:
        self._waiting.discard(request)

    async def open(self, html: str) -> None:
        """Load a page with this in its body, and the script behind it."""
        self.service.html = f'{html}<script src="/live-stock.js" defer></script>'
        await self.page.goto(self.address)

    async def expect_announcement(self, text: str) -> None:
        await expect(self.page.get_by_role("status")).to_have_text(text)

    async def wait_until_live(self) -> None:
        """Wait until the page follows a stream."""

        async def is_live() -> bool:
            return self.service.open == 1 and await self.page.evaluate("live")

        await eventually(is_live)

    async def wait_for_failures(self, times: int) -> None:
        """Wait until this many streams have ended or were refused."""

        async def has_failed() -> bool:
            return await self.page.evaluate("failed") >= times

        await eventually(has_failed)

    async def wait_for_requests(self, path: str, times: int) -> None:
        await eventually(lambda: self.service.times(path) >= times)

    async def pause_clock(self) -> None:
        """Let no time go by on the page from now on, but what `advance_clock` lets go by."""
        await self.page.clock.pause_at((await self.page.evaluate("Date.now()") + 100) / 1000)

    async def advance_clock(self, seconds: float) -> None:
        """Time goes by on the page, in steps that are short enough for answers to come in time."""
        for begin in range(0, int(seconds * 1000), STEP):
            await self.page.clock.run_for(min(STEP, int(seconds * 1000) - begin))
            await eventually(self._has_no_open_request)

    async def wait_for_answers(self, path: str, times: int) -> None:
        """Wait until a path was requested a number of times, and the page has drawn the answers."""
        await self.wait_for_requests(path, times)
        await eventually(self._has_no_open_request)
        await self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    async def _has_no_open_request(self) -> bool:
        return not self._waiting


@contextlib.asynccontextmanager
async def theme(chromium: Browser) -> AsyncGenerator[Theme]:
    """A page that nobody has opened yet; at the end, nothing went wrong on it."""
    port, service = bind_port(), AvailabilityDouble()
    async with serve_app(service.app, port):
        context = await chromium.new_context()
        page = await context.new_page()
        await page.clock.install()
        await page.add_init_script(VISIBLE + WATCHED)
        view = Theme(page, service, f"{port.url}/")
        try:
            yield view
        finally:
            await context.close()
        assert view.faults == []
