"""In Chromium an organizer drops photos onto a page of the console, and chooses them without scripts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, FilePayload, Page, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.console import drop_files, fill_event_form
from tests.browser.looking import session_cookie
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.helpers.pictures import picture

REFUSED = "Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def open_as_organizer(context: BrowserContext, stage: FormStage, path: str) -> Page:
    """A page of the console, which the organizer of the event opens."""
    secret = await stage.service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "password", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{path}")
    return page


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "image/jpeg", "buffer": content}


async def image_urls(stage: FormStage) -> list[str]:
    return (await stage.ada.get(f"/api/events/{stage.event['id']}")).json()["data"]["image_urls"]


async def test_photos_are_dropped_onto_the_page_and_a_refused_one_says_why(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context(locale="en-US")
    watch = Watch(context)
    page = await open_as_organizer(context, stage, f"{stage.event['id']}/photos")
    await expect(page.locator("[data-plain]")).to_be_hidden()
    assert await page.locator("[data-plain]").count() == 1

    await drop_files(page, one=picture(), note=b"no picture", large=b"x" * 5_000_001, two=picture("image/jpeg", 41))

    await expect(page.locator("#photos img")).to_have_count(2)
    rows = page.get_by_role("list", name="Photos that are being sent").get_by_role("listitem")
    await expect(rows).to_have_text(
        ["note.jpg is no JPEG, PNG, WebP or GIF image", "large.jpg is larger than 5 MB"], use_inner_text=True
    )
    await expect(page.get_by_role("status")).to_have_text("two.jpg is uploaded")
    assert len(await image_urls(stage)) == 2
    assert watch.failures == [REFUSED]
    assert watch.hosts == {stage.base_url.split("/")[2]}


async def test_a_new_event_is_created_with_the_photos_that_stayed_chosen(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context(locale="en-US")
    watch = Watch(context)
    page = await open_as_organizer(context, stage, "new")
    await fill_event_form(page)

    await drop_files(page, one=picture(), two=picture("image/jpeg", 41))
    await page.get_by_role("checkbox", name="Show photo 2").uncheck()
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("heading", name="Pottery")).to_be_visible()

    _, event = (await stage.ada.get("/api/events")).json()["data"]
    assert len(event["image_urls"]) == 1
    assert watch.failures == []


async def test_photos_are_chosen_without_scripts(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context(java_script_enabled=False, locale="en-US")
    page = await open_as_organizer(context, stage, f"{stage.event['id']}/photos")
    field: Any = page.get_by_label("Add photos")

    await field.set_input_files([file("one.jpg", picture()), file("note.jpg", b"no picture")])
    await page.get_by_role("button", name="Upload").click()
    await expect(page.get_by_text("note.jpg is no JPEG, PNG, WebP or GIF image")).to_be_visible()
    await expect(page.locator("#photos img")).to_have_count(1)

    await page.goto(f"{stage.base_url}/console/events/new")
    await fill_event_form(page)
    await field.set_input_files([file("one.jpg", picture())])
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("heading", name="Pottery")).to_be_visible()
    _, event = (await stage.ada.get("/api/events")).json()["data"]
    assert len(event["image_urls"]) == 1
