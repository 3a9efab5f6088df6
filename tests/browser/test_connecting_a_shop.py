"""A merchant connects a shop in Chromium, and each page is accessible."""

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.merchants import serve_merchant_console
from tests.helpers.platform_shop import DOMAIN

CONNECTED = {"en": "Your shop is connected", "de": "Ihr Shop ist verbunden"}
NOT_CONNECTED = {"en": "Your shop is not connected", "de": "Ihr Shop ist nicht verbunden"}


@parametrize_looks
async def test_a_shop_is_connected_from_the_link_to_its_key(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)

        await page.goto(f"{base_url}/?lang={language}")
        await page.locator("#shop").fill(DOMAIN)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Install").click()
        await expect(page.locator("h1")).to_have_text(CONNECTED[language])
        assert await violations(page) == []
        assert await too_wide(page) == []
        key = await page.locator("#key").inner_text()
        shop = await scene.find_shop(key)
        assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}

        await page.reload()
        await expect(page.locator("h1")).to_have_text(NOT_CONNECTED[language])
        assert await violations(page) == []
        assert await too_wide(page) == []
        # The page repeats nothing of the signed address, so it asks for the shop.
        await expect(page.locator("main a")).to_have_count(0)
        await page.locator("#shop").fill("My-Shop")
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_contain_text("my-shop.myshopify.com")
        assert await violations(page) == []
        # The shop has agreed already: this leads to the end at once.
        await page.locator("#shop").fill(DOMAIN)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(CONNECTED[language])
        assert key not in await page.content()
        await page.locator("a.button").click()
        await expect(page.locator(".admin > header")).to_contain_text(DOMAIN)
        assert faults == []
        await context.close()
