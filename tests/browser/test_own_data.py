"""In Chromium a person asks for the link to the own data, downloads it, and has it erased."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from holdfast.events.settings import Settings
from tests.browser.looking import (
    open_context,
    parametrize_looks,
    submit,
    too_wide,
    violations,
    with_and_without_scripts,
)
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.pages.own_data import sent_links
from tests.events.pages.own_registration import own_path
from tests.helpers.people import end_event, read_all_text, sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings, title="Life drawing with a live model " + "W" * 60) as stage:
        yield stage


async def ask(page: Page, stage: FormStage) -> None:
    """Ask for the link, on the page of the registration."""
    await page.goto(await own_path(stage.service, stage.event["id"], "ann@example.com"))
    await page.get_by_role("link", name="Your data").click()
    await page.get_by_role("button", name="Send me the link").click()
    await expect(page.get_by_role("status")).to_have_text("Check your inbox")


@with_and_without_scripts
async def test_the_own_data_is_downloaded_and_then_erased(
    chromium: Browser, stage: FormStage, scripts: bool, tmp_path: Path
) -> None:
    await sign_up(stage.service, stage.event, "ann", "bob")
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    page = await context.new_page()
    await ask(page, stage)

    await page.goto(stage.base_url + await sent_links(stage.service))
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download my data").click()
    file = await download.value
    await file.save_as(tmp_path / "data.json")
    await page.get_by_role("button", name="Erase my data …").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Erase your data?")
    await page.get_by_role("button", name="Erase my data now").click()
    await expect(page.get_by_role("heading")).to_have_text("Your data is erased.")

    assert file.suggested_filename == "my-data.json"
    exported = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))
    assert exported["registrations"][0]["name"] == "Ann Example"
    assert "ann@" not in await read_all_text(stage.service)
    assert await context.cookies() == []
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


@parametrize_looks
async def test_pages_of_the_own_data_are_accessible_and_fit(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    past = await stage.ada.create_event()
    paid = await stage.ada.create_event(pricing_mode="fixed", price=1500, title="Pottery")
    await sign_up(stage.service, past, "ann")
    await stage.ada.register(paid["id"], email="ann@example.com")
    await sign_up(stage.service, stage.event, "ann")
    await end_event(stage.service, past)
    context = await open_context(chromium, scheme, width, language)
    page = await context.new_page()
    buttons = page.locator("button")
    seen: list[str | None] = []

    async def look() -> None:
        seen.append(await page.locator("main").get_attribute("data-state"))
        assert await too_wide(page) == [], seen[-1]
        assert await violations(page) == [], seen[-1]
        assert await page.evaluate("document.documentElement.lang") == language

    await page.goto(f"{await own_path(stage.service, stage.event['id'], 'ann@example.com')}/data")
    await look()
    await submit(buttons)
    await look()
    link = stage.base_url + await sent_links(stage.service)
    await page.goto(link)
    await look()
    await submit(buttons.last)
    await look()
    await submit(buttons)
    await look()
    await page.goto(link)
    await look()

    assert seen == ["asking", "sent", "open", "confirming", "erased", "gone"]


async def test_the_page_of_an_organizer_is_accessible_too(chromium: Browser, stage: FormStage) -> None:
    await stage.service.organizer(email="ann@example.com")
    await sign_up(stage.service, stage.event, "ann")
    page = await (await chromium.new_context(viewport={"width": 320, "height": 800})).new_page()
    await ask(page, stage)

    await page.goto(stage.base_url + await sent_links(stage.service))

    await expect(page.get_by_role("heading")).to_have_text("This address belongs to an organizer.")
    assert await violations(page) == []
