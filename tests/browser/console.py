"""An organizer in the console, in Chromium."""

import base64

from playwright.async_api import BrowserContext, Page, expect

from tests.browser.registering import FormStage

DROP = """
    (files) => {
        const dropped = new DataTransfer();
        for (const [name, content] of files)
            dropped.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name));
        for (const type of ["dragenter", "dragover", "drop"])
            document.body.dispatchEvent(
                new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true }));
    }
"""

EMAIL = "organizer@example.com"

PASSWORD = "correct horse battery"


async def sign_in(context: BrowserContext, stage: FormStage) -> Page:
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/sign-in?return_to=%2Fconsole")
    await page.locator("#email").fill(EMAIL)
    await page.locator("main summary").click()
    await page.locator("#password").fill(PASSWORD)
    await page.locator("main details button").click()
    await expect(page).to_have_url(f"{stage.base_url}/console")
    return page


async def drop_files(page: Page, **files: bytes) -> None:
    await page.evaluate(DROP, [[f"{name}.jpg", base64.b64encode(content).decode()] for name, content in files.items()])


async def fill_event_form(page: Page) -> None:
    """Fill the form of a new event."""
    for label, text in {"Title": "Pottery", "Description": "Clay", "Date and time": "2036-07-12T19:30"}.items():
        await page.get_by_label(label).fill(text)
    await page.get_by_role("textbox", name="Seats", exact=True).fill("12")
