"""The theme block on a storefront, in Chromium: the number is live, and the shop's page never suffers from it."""

import contextlib
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.stock_page import VISIBLE, StockPage
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Shop, client_secret, running_inventory, unlimited
from tests.helpers.processes import Process, port_that_stays_free
from tests.helpers.processes import running_processes as processes
from tests.helpers.serving import bind_port, serve_app

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
async def open_storefront(database_url: str, tmp_path: Path) -> AsyncGenerator[Stand]:
    """A shop with a pool of 50 and a storefront, for as long as the block lasts."""
    port, service_port = bind_port(), str(port_that_stays_free())
    async with running_inventory(unlimited(database_url, tmp_path)) as inventory:
        shop = await inventory.create_shop()
        pool = await shop.create_golden_pool()
        with processes(database_url, tmp_path, 1, "--port", service_port, service="inventory") as [service]:
            secret = client_secret(inventory.settings).decode()
            double = ShopifyDouble(port.url, App("client-tests", secret, service.url))
            double.begin(shop.domain)
            double.install(shop.domain)
            with contextlib.closing(double):
                async with serve_app(double.app, port):
                    yield Stand(double, shop, pool["id"], service)


IN = {"en": "{} in stock", "de": "{} auf Lager"}
LOW = {"en": "Only {} left", "de": "Nur noch {} verfügbar"}
OUT = {"en": "Sold out", "de": "Ausverkauft"}
BACK = {"en": "Back in stock: {}", "de": "Wieder auf Lager: {}"}

OLD = {"en": r"^{} in stock at \d+:\d\d", "de": r"^{} auf Lager um \d+:\d\d$"}


@parametrize_looks
async def test_a_visitor_sees_each_sale_at_once_and_the_page_outlives_the_service(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    with scratch_database(inventory_template, "theme") as url:
        async with open_storefront(url, tmp_path) as stand:
            context = await open_context(chromium, scheme, width, language)
            visit = await stand.visited(context, language)
            page = visit.page
            await visit.expect_text(IN[language].format(50))
            await visit.wait_until_live()

            requests = [*visit.requests]
            await stand.sell(6)
            await visit.expect_text(IN[language].format(44))
            assert visit.requests == requests  # the stream said it, not another question
            await expect(page.locator("[data-variant$='/1006']")).to_have_text(IN[language].format(7))
            await expect(page.locator("[data-variant$='/1012']")).to_have_text(LOW[language].format(3))

            # The keyboard alone chooses another variant.
            while await page.evaluate("document.activeElement.type") != "radio":
                await page.keyboard.press("Tab")
            await page.keyboard.press("ArrowDown")
            await visit.expect_text(IN[language].format(7))
            await page.keyboard.press("ArrowDown")
            await visit.expect_text(LOW[language].format(3))
            await expect(page.get_by_role("status").first).to_have_text(LOW[language].format(3))
            await visit.looks_right()

            await stand.count(5)
            await visit.expect_text(OUT[language])
            await stand.count(24)
            await visit.expect_text(BACK[language].format(2))

            stand.service.kill()
            await expect(visit.line).to_have_text(re.compile(OLD[language].format(2)), timeout=15_000)
            await visit.looks_right()
            await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**variant=1012**")
            await expect(page.get_by_role("button")).to_be_visible()
            await expect(visit.line).to_have_text("")

            await stand.sell(12)
            stand.service.start()
            await visit.expect_text(LOW[language].format(1))
            await visit.wait_until_live()
            await stand.sell(12)
            await visit.expect_text(OUT[language])
            assert visit.faults == []
            await visit.looks_right()
            await context.close()


async def test_a_hidden_page_asks_nothing_and_is_right_again_when_it_is_seen(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    with scratch_database(inventory_template, "theme_hidden") as url:
        async with open_storefront(url, tmp_path) as stand:
            context = await open_context(chromium, "light", 1280, "en")
            visit = await stand.visited(context, clock=True)
            await visit.expect_text("50 in stock")
            await visit.wait_until_live()

            await visit.set_hidden(hidden=True)
            visit.requests.clear()
            await stand.sell(1)
            # An hour goes by: no timer is left that would ask.
            await visit.page.clock.run_for(3_600_000)
            assert visit.requests == []
            await visit.expect_text("50 in stock")

            await visit.set_hidden(hidden=False)
            await visit.expect_text("49 in stock")
            await visit.wait_until_live()
            assert [address.partition("?")[0].rpartition("/")[2] for address in visit.requests] == [
                "availability",
                "stream",
            ]
            assert visit.faults == []
            await context.close()
