"""The first focus of every page is a link that leads past its navigation."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

import holdfast
import holdfast_demo
from holdfast.events.settings import Settings
from tests.browser.registering import FormStage, serve_stage
from tests.events.console.organizing import sign_in_organizer

TEMPLATES = [path for package in (holdfast, holdfast_demo) for path in Path(*package.__path__).rglob("*.html")]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


@pytest.mark.parametrize("page_of", ["the public", "an organizer"])
async def test_the_first_focus_leads_to_the_content(chromium: Browser, stage: FormStage, page_of: str) -> None:
    context = await chromium.new_context(locale="en-GB")
    address = stage.event["public_url"]
    if page_of == "an organizer":
        _, browser = await sign_in_organizer(stage.service)
        for name, value in browser.http.cookies.items():
            await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
        address = f"{stage.base_url}/console"
    page = await context.new_page()
    await page.goto(address)

    await page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the content")
    await expect(link).to_be_focused()
    await expect(link).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")

    assert await page.evaluate("document.querySelector('main').contains(document.activeElement)")
    await expect(link).not_to_be_in_viewport()


async def test_every_page_is_in_the_layout_with_the_link() -> None:
    pages = [path for path in TEMPLATES if re.search("<body", path.read_text(encoding="utf-8"))]

    outside = {"letter.html"}  # of mails
    assert [path.name for path in pages if path.name not in outside and 'class="skip"' not in path.read_text()] == []
