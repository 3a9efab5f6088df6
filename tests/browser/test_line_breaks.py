"""The lines of a text in Chromium: each is shown below the one before, also on a phone."""

from playwright.async_api import Browser

from holdfast.events.settings import Settings
from tests.browser.visitors import PHONE
from tests.helpers.serving import serve_events

LINES = ["Studio 5", "Hauptstr. 1", "10115 Berlin"]


async def test_the_lines_of_a_text_and_of_an_address_are_shown_below_each_other(
    settings: Settings, chromium: Browser
) -> None:
    async with serve_events(settings) as service:
        ada = await service.organizer("Ada Events")
        event = await ada.create_event(body="\n".join(LINES), address="\n".join(LINES))
        context = await chromium.new_context(viewport={"width": PHONE, "height": 800})
        page = await context.new_page()
        await page.goto(event["public_url"])

        visible_texts = [await page.locator(place).first.inner_text() for place in (".text p", ".lines")]

        assert visible_texts == ["\n".join(LINES)] * 2
        await context.close()
