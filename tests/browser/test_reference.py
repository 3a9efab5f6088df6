"""The reference in Chromium: it is accessible, fits small screens, can be searched, and sends requests."""

import json
import re
from typing import Any

from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.helpers.serving import serve_events


@parametrize_looks
async def test_the_reference_is_accessible_and_fits_small_screens(
    chromium: Browser, settings: Settings, scheme: Any, width: int, language: str
) -> None:
    failures: list[str] = []
    async with serve_events(settings) as service:
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        page.on("console", lambda message: failures.append(message.text))
        page.on(
            "request", lambda request: failures.append(request.url) if service.base_url not in request.url else None
        )
        await page.goto(f"{service.base_url}/docs")
        assert await too_wide(page) == []
        assert await violations(page) == []
        await page.goto(f"{service.base_url}/docs/events")
        await page.locator("#get_event .try summary").click()

        await expect(page.locator("html")).to_have_attribute("lang", language)
        assert await too_wide(page) == []
        assert await violations(page) == []
        assert failures == []
        await context.close()


async def test_a_reader_searches_an_operation_and_sends_a_request_with_a_key(
    chromium: Browser, settings: Settings
) -> None:
    async with serve_events(settings) as service:
        ada = await service.organizer()
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(f"{service.base_url}/docs/objects")

        await page.get_by_label("Search").fill("publish waitinglist_capacity create")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"{service.base_url}/docs?q=*")
        await expect(page.get_by_label("Search")).to_have_value("publish waitinglist_capacity create")
        await expect(page.get_by_role("link", name="List api keys")).to_be_hidden()
        await expect(page.get_by_role("main").get_by_role("heading", name="Waiting rooms")).to_be_hidden()
        await expect(page.get_by_role("status").first).to_have_text(re.compile(r"words: 1 of \d+\.$"))
        await page.get_by_role("link", name="Create event").click()

        operation = page.locator("#create_event")
        await expect(operation).to_be_visible()
        await operation.locator(".try summary").click()
        send = operation.get_by_role("button", name="Send the request")
        await send.click()
        await expect(operation.locator(".answer h3")).to_contain_text("401")
        await operation.get_by_label("API key").fill(str(ada.key))
        await send.click()
        await expect(operation.locator(".answer h3")).to_contain_text("201")
        event = json.loads(await operation.locator(".answer pre").inner_text())["data"]
        assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["title"] == event["title"]

        again = page.locator("#get_event")
        await again.locator(".try summary").click()
        await again.get_by_label("id").fill(str(event["id"]))
        await again.get_by_role("button", name="Send the request").click()
        await expect(again.locator(".answer pre")).to_contain_text(event["title"])
        await context.close()
