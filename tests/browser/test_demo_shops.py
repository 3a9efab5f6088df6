"""Demo shops in Chromium: people install the app, sell, count by hand and watch; each page is accessible."""

import contextlib
import re
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, expect

from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.browser.looking import looks, open_context, too_wide, violations
from tests.demo.shopify.stage import CLIENT, DOMAIN, SCOPES, SECRET
from tests.serving import listener, serving


@looks
async def test_a_merchant_installs_the_app_in_a_demo_shop_and_sells_a_pack(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    here = listener()
    address = f"http://127.0.0.1:{here.getsockname()[1]}"
    # Nobody needs the app itself here: people come back to the list of shops.
    double = ShopifyDouble(address, App(CLIENT, SECRET, address, redirects=(f"{address}/",)))
    double.begin(DOMAIN)
    parameters = {"client_id": CLIENT, "scope": SCOPES, "state": "state", "redirect_uri": f"{address}/"}
    with contextlib.closing(double):
        async with serving(double.app, here):
            context = await open_context(chromium, scheme, width, language)
            page = await context.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on(
                "console", lambda message: faults.append(message.text) if "Content Security" in message.text else None
            )

            await page.goto(f"{address}/{DOMAIN}/admin/oauth/authorize?{urlencode(parameters)}")
            assert await violations(page) == []
            assert await too_wide(page) == []
            await expect(page.get_by_role("main")).to_contain_text("See your products and their packs")
            await expect(page.get_by_text("read_products")).to_be_hidden()
            await page.get_by_role("button", name="Install").click()
            await expect(page.get_by_text("has the app")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []

            await page.get_by_role("link", name=DOMAIN, exact=True).click()
            await page.get_by_role("button", name="Sell one 6-pack").click()
            await expect(page.get_by_text("7 available")).to_be_visible()
            await page.get_by_role("link", name=re.compile("Count by hand.*Single")).click()
            assert await violations(page) == []
            assert await too_wide(page) == []
            await page.get_by_label("How many are available").fill("12")
            await page.keyboard.press("Enter")
            await expect(page.get_by_text("12 available")).to_be_visible()
            await page.get_by_role("button", name=re.compile("Cancel.*#1001")).click()
            await expect(page.get_by_text("cancelled")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []

            await page.get_by_role("link", name="Fill a cart").click()
            name = await page.get_by_text("Single").bounding_box()
            quantity = await page.get_by_label("Single").bounding_box()
            assert name
            assert quantity
            assert quantity["y"] < name["y"] + name["height"], "the number stands beside its pack"
            await page.get_by_label(re.compile("Single")).fill("13")
            await page.get_by_role("button", name="Pay").click()
            await expect(page.get_by_role("alert")).to_be_visible()
            assert await violations(page) == []
            assert await too_wide(page) == []
            assert faults == []
            await context.close()


@looks
async def test_a_pack_bought_on_a_storefront_leaves_the_picture_of_the_stock(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    here = listener()
    address = f"http://127.0.0.1:{here.getsockname()[1]}"
    double = ShopifyDouble(address, App(CLIENT, SECRET, address, redirects=(f"{address}/",)))
    double.begin(DOMAIN)
    with contextlib.closing(double):
        async with serving(double.app, here):
            context = await open_context(chromium, scheme, width, language)
            page = await context.new_page()

            await page.goto(f"{address}/{DOMAIN}/side-by-side")
            stock, heading = page.locator("#stock"), page.get_by_role("heading", level=1)
            room = await stock.bounding_box()
            words = await heading.bounding_box()
            assert room
            assert words
            assert words["height"] > 20
            assert words["y"] + words["height"] < room["y"] + room["height"]
            views = await page.locator(".views").bounding_box()
            foot = await page.get_by_text("nothing is sold", exact=False).first.bounding_box()
            assert views
            assert foot
            assert views["y"] + views["height"] <= foot["y"], "nothing lies across the pages below"
            assert await too_wide(page) == []
            assert await violations(page) == []

            await page.get_by_role("button", name="Buy Single").click()

            await expect(stock.get_by_text("49 left")).to_be_visible()
            await expect(stock.locator("use.sold")).to_have_count(1)
            await expect(page.frame_locator("iframe[name=shop]").get_by_text("49 available")).to_be_visible()
            await context.close()
