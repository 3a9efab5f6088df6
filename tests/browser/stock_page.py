"""A page with live numbers of stock, and what went wrong on it."""

import json

from playwright.async_api import Locator, Page, expect

VISIBLE = """
  window.tab = { hidden: false };
  Object.defineProperty(document, "hidden", { get: () => tab.hidden });
  Object.defineProperty(document, "visibilityState", { get: () => (tab.hidden ? "hidden" : "visible") });
"""
"""Lets a test hide a page, which Chromium without a window does not do."""


class StockPage:
    """A page in Chromium that loads `VISIBLE`.

    line      the line with the number of the variant that is chosen
    faults    the errors of its scripts
    """

    def __init__(self, page: Page, line: Locator) -> None:
        self.page = page
        self.line = line
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))

    async def expect_text(self, text: str) -> None:
        await expect(self.line).to_have_text(text, timeout=15_000)

    async def set_hidden(self, *, hidden: bool) -> None:
        await self.page.evaluate(
            f"tab.hidden = {json.dumps(hidden)}; document.dispatchEvent(new Event('visibilitychange'))"
        )
