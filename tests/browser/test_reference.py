"""The reference in Chromium: it fits small screens, and everybody can read it."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.test_waiting_room import violations
from tests.serving import listener, running_already, serving
from tests.support import running


@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 320), ("light", 1280), ("dark", 1280)])
async def test_the_reference_is_accessible_and_fits_small_screens(
    chromium: Browser, settings: Settings, scheme: Any, width: int
) -> None:
    at = listener()
    address = f"http://127.0.0.1:{at.getsockname()[1]}"
    failures: list[str] = []
    async with running(settings) as service, serving(running_already(service.app), at):
        viewport: Any = {"width": width, "height": 800}
        context = await chromium.new_context(color_scheme=scheme, viewport=viewport, locale="de-DE")
        page = await context.new_page()
        page.on("console", lambda said: failures.append(said.text))
        page.on("request", lambda request: failures.append(request.url) if address not in request.url else None)
        await page.goto(f"{address}/docs")

        await expect(page.locator("html")).to_have_attribute("lang", "en")
        await expect(page.get_by_text("Deutsch")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await violations(page) == []
        assert failures == []
        await context.close()
