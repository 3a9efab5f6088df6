"""The error page in Chromium: it is accessible, in both languages, on small screens and in the dark."""

from typing import Any

from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.helpers.serving import serve_events

SAYS = {"en": "There is no such page.", "de": "Diese Seite gibt es nicht."}
OTHER = {"en": ("Deutsch", SAYS["de"]), "de": ("English", SAYS["en"])}
"""The link to the other language, and what the page says in that."""


@parametrize_looks
async def test_the_error_page_is_accessible_and_changes_its_language_by_keyboard(
    chromium: Browser, settings: Settings, scheme: Any, width: int, language: str
) -> None:
    other, changed = OTHER[language]
    strangers: list[str] = []
    async with serve_events(settings) as service:
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        page.on("request", lambda request: None if service.base_url in request.url else strangers.append(request.url))
        page.on("pageerror", lambda error: strangers.append(str(error)))
        page.on(
            "console", lambda message: strangers.append(message.text) if "Content Security" in message.text else None
        )

        await page.goto(f"{service.base_url}/{'nothing' * 50}")
        await expect(page.locator("h1")).to_have_text(SAYS[language])
        assert await violations(page) == []
        assert await too_wide(page) == []

        for _ in range(4):  # the link past the navigation, the start page, the console, the other language
            await page.keyboard.press("Tab")
        await expect(page.locator(":focus")).to_have_text(other)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(changed)
        assert await violations(page) == []
        assert strangers == []
        await context.close()
