"""A shop with the theme block, the service in a process of its own, and a visitor in Chromium."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from playwright.async_api import BrowserContext, Locator, Page, expect

from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.browser.looking import too_wide, violations
from tests.helpers.processes import Process, port_that_stays_free
from tests.helpers.processes import serving as processes
from tests.inventory.support import Shop, client_secret, running, unlimited
from tests.serving import listener, serving
from tests.support import eventually

VISIBLE = """
  window.tab = { hidden: false };
  Object.defineProperty(document, "hidden", { get: () => tab.hidden });
  Object.defineProperty(document, "visibilityState", { get: () => (tab.hidden ? "hidden" : "visible") });
"""
"""Lets a test hide a page, which Chromium without a window does not do."""

SHIFTS = """
  window.moved = 0;
  new PerformanceObserver((seen) => seen.getEntries().forEach((shift) => (window.moved += shift.value)))
    .observe({ type: "layout-shift", buffered: true });
"""


class Visit:
    """A product's page, and what went wrong on it.

    asked    the addresses that the page has asked for since it was loaded
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "console", lambda message: self.faults.append(message.text) if "Content Security" in message.text else None
        )

    @property
    def line(self) -> Locator:
        """The line of the variant that is chosen."""
        return self.page.locator("[data-follows]")

    async def says(self, text: str) -> None:
        await expect(self.line).to_have_text(text, timeout=15_000)

    async def live(self) -> None:
        """Wait until the page follows a stream."""

        async def follows() -> bool:
            return any("/storefront/stream" in url for url in self.requests)

        await eventually(follows)

    async def hide(self) -> None:
        await self._turn("true")

    async def show(self) -> None:
        await self._turn("false")

    async def _turn(self, hidden: str) -> None:
        await self.page.evaluate(f"tab.hidden = {hidden}; document.dispatchEvent(new Event('visibilitychange'))")

    async def looks_right(self) -> None:
        """The page is accessible and fits, and nothing on it has moved by itself."""
        assert await self.page.evaluate("window.moved") == 0
        assert await violations(self.page) == []
        assert await too_wide(self.page) == []
        # To look at other widths moves everything.
        await self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        await self.page.evaluate("window.moved = 0")


class Stand:
    """A shop at the platform, the service that its storefront asks, and an agent who asks another process of it."""

    def __init__(self, double: ShopifyDouble, shop: Shop, pool: int, service: Process) -> None:
        self.double = double
        self.shop = shop
        self.service = service
        self._pool = pool

    async def count(self, quantity: int) -> None:
        """Set the pool to what was counted."""
        await self.shop.call("set_pool_quantity", pool_id=self._pool, quantity=quantity)

    async def sell(self, units: int) -> None:
        await self.shop.call("record_sale", pool_id=self._pool, quantity=units)

    async def visited(self, context: BrowserContext, language: str = "en", *, clock: bool = False) -> Visit:
        """The page of honey, opened by a customer, and what it does from then on.

        clock    whether the test moves the clock of the page
        """
        page = await context.new_page()
        if clock:
            await page.clock.install()
        await page.add_init_script(VISIBLE + SHIFTS)
        visit = Visit(page)
        await page.goto(f"{self.double.address}/{self.shop.domain}/products/honey-jars?locale={language}")
        return visit


@contextlib.asynccontextmanager
async def shopping(database_url: str, tmp_path: Path) -> AsyncGenerator[Stand]:
    """A shop with a pool of 50 and a storefront, for as long as the block lasts."""
    here, port = listener(), str(port_that_stays_free())
    address = f"http://127.0.0.1:{here.getsockname()[1]}"
    async with running(unlimited(database_url, tmp_path)) as inventory:
        shop = await inventory.shop()
        pool = await shop.golden()
        with processes(database_url, tmp_path, 1, "--port", port, service="inventory") as [service]:
            secret = client_secret(inventory.settings).decode()
            double = ShopifyDouble(address, App("client-tests", secret, service.url))
            double.begin(shop.domain)
            double.install(shop.domain)
            with contextlib.closing(double):
                async with serving(double.app, here):
                    yield Stand(double, shop, pool["id"], service)
