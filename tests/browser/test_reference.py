"""The reference in Chromium: it fits small screens, and everybody can read it."""

from typing import Any

from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.looking import looking, looks, too_wide, violations
from tests.serving import listener, running_already, serving
from tests.support import running


@looks
async def test_the_reference_is_accessible_and_fits_small_screens(
    chromium: Browser, settings: Settings, scheme: Any, width: int, language: str
) -> None:
    at = listener()
    address = f"http://127.0.0.1:{at.getsockname()[1]}"
    failures: list[str] = []
    async with running(settings) as service, serving(running_already(service.app), at):
        context = await looking(chromium, scheme, width, language)
        page = await context.new_page()
        page.on("console", lambda message: failures.append(message.text))
        page.on("request", lambda request: failures.append(request.url) if address not in request.url else None)
        await page.goto(f"{address}/docs")

        await expect(page.locator("html")).to_have_attribute("lang", "en")
        await expect(page.get_by_text("Deutsch")).to_have_count(0)
        assert await too_wide(page) == []
        assert await violations(page) == []
        assert failures == []
        await context.close()
