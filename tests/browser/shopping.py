"""A shop with the theme block, the service in a process of its own, and a visitor in Chromium."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from playwright.async_api import BrowserContext, Page

from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.browser.looking import too_wide, violations
from tests.browser.stock_page import VISIBLE, StockPage
from tests.helpers.processes import Process, port_that_stays_free
from tests.helpers.processes import serving as processes
from tests.inventory.support import Shop, client_secret, running, unlimited
from tests.serving import listener, serving
from tests.support import eventually

SHIFTS = """
  window.moved = 0;
  new PerformanceObserver((seen) => seen.getEntries().forEach((shift) => (window.moved += shift.value)))
    .observe({ type: "layout-shift", buffered: true });
"""


class Visit(StockPage):
    """A product's page, and what went wrong on it.

    requests    the addresses that the page has asked for since it was loaded
    """

    def __init__(self, page: Page) -> None:
        super().__init__(page, page.locator("[data-follows]"))
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on(
            "console", lambda message: self.faults.append(message.text) if "Content Security" in message.text else None
        )

    async def wait_until_live(self) -> None:
        """Wait until the page follows a stream."""
        await eventually(lambda: any("/storefront/stream" in url for url in self.requests))

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
