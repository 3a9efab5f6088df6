"""The start page of the inventory service in Chromium: its example of packs computes the right quantities."""

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.merchants import serve_merchant_console

JARS = 42


@parametrize_looks
async def test_a_sale_on_the_shelf_changes_what_is_left_of_every_pack(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (_, address):
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        for path in ("/agents", "/developers", "/"):
            await page.goto(f"{address}{path}?lang={language}")
            assert await violations(page) == []
            assert await too_wide(page) == []

        for units in (0, 1, 6, 12):
            await page.locator(f'[name=sale][value="{units}"]').check()
            for pack, row in zip((1, 6, 12), await page.locator(".shelf .rows li").all(), strict=True):
                await expect(row.locator(".left strong:visible")).to_have_count(1)
                left = await row.locator(".left strong:visible").inner_text()
                assert re.findall("[0-9]+", left) == [str((JARS - units) // pack)], (units, pack)
            faded = "uses => uses.filter(use => getComputedStyle(use).opacity < 1).length"
            assert await page.locator(".shelf use").evaluate_all(faded) == units
        await context.close()
