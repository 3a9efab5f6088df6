"""Scanners in Chromium: browsers at the check-in of an event, and what they say and keep."""

from typing import Any

from playwright.async_api import BrowserContext, Page, expect

from tests.browser.registering import FormStage
from tests.events.console.organizing import PASSWORD
from tests.helpers.events_service import Client
from tests.helpers.form_browser import Browser as Visitor


async def register_organizer(stage: FormStage) -> Client:
    return await stage.service.organizer("Ada Events", email="ada@example.com", password=PASSWORD)


async def sign_in(stage: FormStage, context: BrowserContext) -> None:
    browser = Visitor(stage.service)
    await browser.send("/sign-in", email="ada@example.com", password=PASSWORD)
    for name, value in browser.http.cookies.items():
        await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])


async def open_scanner(stage: FormStage, context: BrowserContext, event_id: int, device: str) -> Page:
    """A scanner: a browser that is signed in, at the check-in of an event, with its list."""
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event_id}/check-in")
    await expect(page.locator("body[data-kept]")).to_be_attached()
    if not await page.locator("#device").is_visible():
        await page.locator("#this-device summary").click()
    await page.locator("#device").fill(device)
    await expect(page.locator("#list time")).not_to_be_empty()
    return page


async def type_code(page: Page, code: str) -> str:
    """Type a code, and return what the scanner says."""
    # It is not taken away: what is synchronized just then would show it again.
    await page.locator("#verdict").evaluate(
        "element => { for (const verdict of element.querySelectorAll('[data-says]')) verdict.dataset.old = ''; }"
    )
    await page.locator("#text").fill(code)
    await page.locator("#text").press("Enter")
    verdict = page.locator("#verdict [data-says]:not([data-says=asking], [data-old])")
    await verdict.wait_for()
    return " ".join((await verdict.inner_text()).split())


async def stored_scans(stage: FormStage) -> list[tuple[Any, ...]]:
    return await stage.service.run_sql(
        "select split_part(email, '@', 1), device, is_entry from check_in_scans join users on users.id = user_id "
        "order by number"
    )


async def has_sent_all(page: Page) -> bool:
    return (await page.locator("#unsent strong").inner_text()) == "0"
