"""Pages in Chromium that follow a stream."""

from playwright.async_api import BrowserContext, Page


async def open_live(context: BrowserContext, url: str, stream: str = "/stream") -> Page:
    """Open a page, and wait until it follows its stream."""
    page = await context.new_page()
    async with page.expect_response(lambda response: stream in response.url) as opened:
        await page.goto(url)
    response = await opened.value
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
    return page
