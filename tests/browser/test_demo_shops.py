"""Demo shops in Chromium: people install the app, sell, count by hand and watch; each page is accessible."""

import contextlib
import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, Page, expect

from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.browser.looking import SMALL, open_context, parametrize_looks, submit, too_wide, violations
from tests.demo.shopify.stage import CLIENT, DOMAIN, SCOPES, SECRET
from tests.helpers.serving import bind_port, serve_app

SOON = 30_000
"""Milliseconds for what a page asks for now and then: less often where answers take long."""

FLIGHTS = """
  window.flights = 0;
  const count = (nodes) => nodes.forEach((node) => (window.flights += node.classList.contains("flying")));
  new MutationObserver((changes) => changes.forEach(({ addedNodes }) => count(addedNodes)))
    .observe(document.body, { childList: true });
"""
"""Counts the units that leave the shelf before the eyes of a visitor."""


@parametrize_looks
async def test_a_merchant_installs_the_app_in_a_demo_shop_and_sells_a_pack(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    port = bind_port()
    address = port.url
    # Nobody needs the app itself here: people come back to the list of shops.
    double = ShopifyDouble(address, App(CLIENT, SECRET, address, redirects=(f"{address}/",)))
    double.begin(DOMAIN)
    parameters = {"client_id": CLIENT, "scope": SCOPES, "state": "state", "redirect_uri": f"{address}/"}
    with contextlib.closing(double):
        async with serve_app(double.app, port):
            context = await open_context(chromium, scheme, width, "en")
            page = await context.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on(
                "console", lambda message: faults.append(message.text) if "Content Security" in message.text else None
            )

            await page.goto(f"{address}/{DOMAIN}/admin/oauth/authorize?{urlencode(parameters)}")
            assert await violations(page) == []
            assert await too_wide(page) == []
            await expect(page.get_by_role("main")).to_contain_text("Your products and their packs")
            await expect(page.get_by_text("read_products")).to_be_hidden()
            await page.get_by_role("button", name="Install").click()
            await expect(page.get_by_text("Holdfast is installed")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []

            await page.get_by_role("link", name="Open the shop").click()
            await page.get_by_role("button", name="Sell one 6-pack").click()
            await expect(page.locator("[data-count^='1006 ']")).to_have_text("7")
            await page.locator("#more-1001 summary").click()
            await page.get_by_role("link", name=re.compile("Change the stock by hand.*Single")).click()
            assert await violations(page) == []
            assert await too_wide(page) == []
            await page.get_by_label("Available").fill("12")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-count^='1001 ']")).to_have_text("12")
            assert await violations(page) == []
            assert await too_wide(page) == []
            await page.get_by_role("link", name="Orders").click()
            await page.locator("summary", has_text="#1001").click()
            await page.get_by_role("button", name=re.compile("Cancel the order.*#1001")).click()
            await expect(page.get_by_text("Cancelled")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []
            await page.get_by_role("link", name="Developers").click()
            await expect(page.get_by_role("button", name="Uninstall")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []

            assert faults == []
            await context.close()


@parametrize_looks
async def test_a_cart_counts_and_sums_what_is_chosen(chromium: Browser, scheme: Any, width: int, language: str) -> None:
    async with stage_page(chromium, scheme, width) as page:
        await page.goto(page.url.replace("side-by-side", "cart"))
        assert await violations(page) == []
        assert await too_wide(page) == []
        pay = page.locator("#pay")
        await expect(pay).to_be_disabled()
        # A number stands only at what is in the cart.
        await expect(page.get_by_role("textbox")).to_have_count(0)
        for _ in range(2):
            await page.get_by_role("button", name="Add: Honey jars, 6-pack").click()
        await expect(pay).to_have_text("Pay €66.00")
        await page.get_by_role("button", name="One less: Honey jars, 6-pack").click()
        await page.get_by_role("button", name="Add: Honey jars, Single").click()
        await page.get_by_role("button", name="One less: Honey jars, Single").click()
        await expect(page.get_by_role("button", name="Add: Honey jars, Single")).to_be_focused()
        await expect(page.get_by_role("textbox")).to_have_count(1)
        await page.keyboard.press("Enter")
        name = await page.locator("label[for=variant-1001]").bounding_box()
        single = page.get_by_role("textbox", name="Honey jars, Single")
        quantity = await single.bounding_box()
        assert name
        assert quantity
        assert quantity["y"] < name["y"] + 3 * name["height"], "the number stands at its pack"

        await single.fill("60")
        await expect(page.locator("output[for=variant-1001]")).to_have_text("€360.00")
        await expect(pay).to_have_text("Pay €393.00")
        await pay.click()

        await expect(page.get_by_role("alert")).to_contain_text("only 50 left")
        await expect(pay).to_have_text("Pay €393.00")
        assert await violations(page) == []
        assert await too_wide(page) == []

        await page.get_by_role("textbox", name="Honey jars, Single").fill("")
        await submit(pay)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Thank you. Your order is placed.")
        await expect(page.locator("main header")).to_contain_text("Order #1025")
        await expect(page.locator(".order-lines li")).to_contain_text("Honey jars, 6-pack")
        assert await violations(page) == []
        assert await too_wide(page) == []


@parametrize_looks
async def test_a_shop_promises_more_than_there_is_until_the_app_is_installed(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    async with stage_page(chromium, scheme, width) as page:
        stock, heading = page.locator("#stock"), page.get_by_role("heading", level=1)
        await expect(heading).to_have_text("Your shop promises 182 jars. There are 50.")
        await expect(page.get_by_role("button", name="Install")).to_have_count(1)
        await expect(stock.locator(".stock-picture use:not(.sold)")).to_have_count(50)
        views = await page.locator(".views").bounding_box()
        foot = await page.get_by_text("Demo shops: nothing is sold.").last.bounding_box()
        assert views
        assert foot
        assert views["y"] + views["height"] <= foot["y"], "nothing lies across the pages below"
        assert await too_wide(page) == []
        assert await violations(page) == []

        await page.get_by_role("button", name="Buy 12-pack").click()
        await expect(heading).to_have_text("Your shop promises 170 jars. There are 38.", timeout=SOON)
        await expect(stock.locator("use.sold")).to_have_count(12)
        for left in (4, 3, 2, 1):
            await page.get_by_role("button", name="Buy 12-pack").click()
            await expect(stock.locator("[data-count='1012']")).to_have_text(str(left), timeout=SOON)
        await expect(stock).to_contain_text("10 jars are sold that were never there")

        await submit(page.get_by_role("button", name="Install Holdfast"))
        await expect(heading).to_have_text("Holdfast is installed. Next, let the packs share a pool.")
        await expect(page.get_by_role("button", name="Install")).to_have_count(0)
        assert await too_wide(page) == []
        assert await violations(page) == []


@parametrize_looks
async def test_a_pack_bought_beside_the_shop_leaves_the_shelf_and_moves_a_number_in_each_frame(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    async with stage_page(chromium, scheme, width, moves=True) as page:
        await page.evaluate(FLIGHTS)
        await page.get_by_role("button", name="Buy 6-pack").click()

        await expect(page.locator("#stock use.sold")).to_have_count(6, timeout=SOON)
        await expect(page.locator(".flying")).to_have_count(0)
        assert await page.evaluate("flights") == 6
        shop, storefront = (page.frame_locator(f"iframe[name={name}]") for name in ("shop", "storefront"))
        await expect(shop.locator("[data-count^='1006 ']")).to_have_text("9", timeout=SOON)
        await expect(storefront.locator("#stock-1006")).to_have_text("9 in stock", timeout=SOON)
        if width < 600:
            assert await storefront.locator("html").evaluate("page => page.scrollHeight <= innerHeight"), "it is cut"
            await expect(page.locator("iframe[name=shop]")).not_to_be_visible()
            await page.get_by_text("Shop admin").first.click()
        for number in (shop.locator("[data-count^='1006 ']"), storefront.locator("#stock-1006")):
            assert await number.evaluate("number => number.getBoundingClientRect().bottom < innerHeight")


async def test_a_pack_that_sells_out_and_comes_back_is_chosen_again_without_loading_the_page(chromium: Browser) -> None:
    async with stage_page(chromium, "light", 1280) as page:
        storefront = page.frame_locator("iframe[name=storefront]")
        pack, button = storefront.locator("#pack-1012"), storefront.get_by_role("button", name="Buy this pack")
        await storefront.locator("label[for=pack-1012]").click()
        await expect(button).to_be_enabled()
        merchant = await page.context.new_page()

        async def count(available: str) -> None:
            await merchant.goto(page.url.replace("side-by-side", "variants/1012"))
            await merchant.get_by_label("Available").fill(available)
            await submit(merchant.get_by_role("button", name="Save"))
            await page.bring_to_front()

        await count("0")
        await expect(pack).to_be_disabled(timeout=SOON)
        await expect(storefront.get_by_role("button", name="Sold out")).to_be_disabled()
        await expect(storefront.locator(".pack.sold-out").get_by_text("you save")).to_be_hidden()
        await count("3")
        await expect(pack).to_be_enabled(timeout=SOON)
        await expect(button).to_be_enabled()
        await expect(storefront.locator(".pack.sold-out")).to_have_count(0)


async def test_pages_of_the_demo_shop_fit_on_a_small_screen_in_german(chromium: Browser) -> None:
    async with stage_page(chromium, "light", SMALL, "de") as page:
        shop = page.url.removesuffix("/side-by-side")
        pages = (
            "",
            "?tab=orders",
            "?tab=developers",
            "/variants/1001",
            "/products/honey-jars",
            "/cart",
            "/side-by-side",
        )
        for path in (*pages, "/admin/apps/holdfast"):
            await page.goto(f"{shop}{path}")
            assert await too_wide(page) == [], path
            assert await violations(page) == [], path


@contextlib.asynccontextmanager
async def stage_page(
    chromium: Browser, scheme: Any, width: int, language: str = "en", *, moves: bool = False
) -> AsyncGenerator[Page]:
    """The stock of a new demo shop above its pages, without the app. `moves`: for a person who likes things to move."""
    port = bind_port()
    address = port.url
    double = ShopifyDouble(address, App(CLIENT, SECRET, address, redirects=(f"{address}/",)))
    double.begin(DOMAIN, with_more=True)
    with contextlib.closing(double):
        async with serve_app(double.app, port):
            context = await open_context(chromium, scheme, width, language)
            page = await context.new_page()
            if moves:
                await page.emulate_media(reduced_motion="no-preference")
            await page.goto(f"{address}/{DOMAIN}/side-by-side")
            yield page
            await context.close()
