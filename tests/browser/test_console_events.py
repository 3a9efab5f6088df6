"""In Chromium an organizer creates, edits and cancels an event in the console, with scripts and without."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.events.settings import Settings
from tests.browser.registering import Stage, Watch, staged, violations

EMAIL = "organizer@example.com"
PASSWORD = "correct horse battery"


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[Stage]:
    async with staged(settings) as stage:
        stage.ada = await stage.service.organizer(email=EMAIL, password=PASSWORD)
        yield stage


async def signed_in(context: BrowserContext, stage: Stage) -> Page:
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/sign-in?return_to=%2Fconsole")
    await page.locator("#email").fill(EMAIL)
    await page.locator("summary").click()
    await page.locator("#password").fill(PASSWORD)
    await page.locator("form button").click()
    await expect(page).to_have_url(f"{stage.base_url}/console")
    return page


@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
async def test_an_event_is_created_edited_and_cancelled(chromium: Browser, stage: Stage, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    page = await signed_in(context, stage)

    await page.get_by_role("link", name="New event").click()
    await page.get_by_label("Title").fill("Life drawing")
    await page.get_by_label("Description").fill("Bring a **pencil**.")
    await page.get_by_label("Date and time").fill("2036-07-12T19:30")
    await page.get_by_label("Time zone").select_option("Europe/Berlin")
    await page.get_by_role("textbox", name="Places", exact=True).fill("12")
    await page.get_by_role("button", name="Create the event").click()
    await expect(page.get_by_role("heading", name="Life drawing")).to_be_visible()
    await page.get_by_role("link", name="Edit", exact=True).click()
    await page.get_by_label("Title").fill("Pottery")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Pottery")).to_be_visible()
    await page.get_by_role("link", name="Cancel …").click()
    await page.get_by_role("button", name="Cancel the event now").click()
    await expect(page.get_by_text("This event is cancelled.")).to_be_visible()

    [event] = (await stage.ada.get("/api/events")).json()["data"]
    assert (event["title"], event["status"]) == ("Pottery", "cancelled")
    assert (event["datetime"], event["body"]) == ("2036-07-12T17:30:00Z", "Bring a **pencil**.")
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


@pytest.mark.parametrize(
    ("scheme", "width", "language"),
    [("light", 320, "en"), ("dark", 320, "de"), ("light", 1280, "de"), ("dark", 1280, "en")],
)
async def test_every_page_is_accessible_and_fits(
    chromium: Browser, stage: Stage, scheme: Any, width: int, language: str
) -> None:
    event = await stage.ada.create_event(title="W" * 90, pricing_mode="fixed", price=1500, address="Studio Street 1")
    await stage.ada.patch(f"/api/events/{event['id']}", {"event": {"price": 2000}})
    await stage.ada.register(event["id"], email="ann@example.com")
    await stage.service.settle()
    context = await chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 800}, locale="de-DE" if language == "de" else "en-US"
    )
    page = await signed_in(context, stage)
    home = f"{stage.base_url}/console"
    own = f"{home}/events/{event['id']}"

    async def look(name: str) -> None:
        if folder := os.environ.get("SHOTS"):
            await page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert await violations(page) == [], name
        assert await page.evaluate("document.documentElement.lang") == language

    for name, address in {
        "list": home,
        "event": own,
        "new": f"{home}/events/new",
        "copy": f"{home}/events/new?copy={event['id']}",
        "cancel": f"{own}/cancel",
        "photos": f"{own}/photos",
    }.items():
        await page.goto(address)
        await look(name)
    await page.goto(f"{home}/events/new")
    await page.locator("form[novalidate] button").click()
    await expect(page.locator("[aria-invalid]").first).to_be_visible()
    await look("wrong")
    await page.goto(f"{own}/edit")
    await look("edit")
    await stage.ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Changed by an agent", "capacity": 40}})
    await page.locator("form[novalidate] button").click()
    await look("changed")
