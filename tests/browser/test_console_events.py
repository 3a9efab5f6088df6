"""In Chromium an organizer creates, edits and cancels an event in the console, with scripts and without."""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.console import EMAIL, PASSWORD, sign_in
from tests.browser.looking import (
    open_context,
    parametrize_looks,
    submit,
    too_wide,
    violations,
    with_and_without_scripts,
)
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.helpers.photos import accept_photos, key_of
from tests.helpers.pictures import picture


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        stage.ada = await stage.service.organizer(email=EMAIL, password=PASSWORD)
        yield stage


@with_and_without_scripts
async def test_an_event_is_created_edited_and_cancelled(chromium: Browser, stage: FormStage, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    page = await sign_in(context, stage)

    await page.get_by_role("link", name="New event").click()
    await page.get_by_label("Title").fill("Life drawing")
    await page.get_by_label("Description").fill("Bring a **pencil**.")
    await page.get_by_label("Date and time").fill("2036-07-12T19:30")
    await page.get_by_role("link", name="Change it").click()
    if not scripts:
        await page.get_by_text("More options", exact=True).click()
    await page.get_by_label("Time zone").select_option("Europe/Berlin")
    await page.get_by_role("textbox", name="Seats", exact=True).fill("12")
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("heading", name="Life drawing")).to_be_visible()
    await page.get_by_role("link", name="Edit", exact=True).click()
    await page.get_by_label("Title").fill("Pottery")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Pottery")).to_be_visible()
    await page.get_by_text("More", exact=True).click()
    await page.get_by_role("link", name="Cancel the event …").click()
    await page.get_by_role("button", name="Cancel the event").click()
    await expect(page.get_by_text("This event is cancelled.")).to_be_visible()

    [event] = (await stage.ada.get("/api/events")).json()["data"]
    assert (event["title"], event["status"]) == ("Pottery", "cancelled")
    assert (event["datetime"], event["body"]) == ("2036-07-12T17:30:00Z", "Bring a **pencil**.")
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


async def test_a_mail_is_previewed_in_the_console_and_then_saved(chromium: Browser, stage: FormStage) -> None:
    event = await stage.ada.create_event()
    context = await chromium.new_context(java_script_enabled=False)
    watch = Watch(context)
    page = await sign_in(context, stage)
    await page.goto(f"{stage.base_url}/console/events/{event['id']}")
    await page.get_by_role("navigation", name="This event").get_by_role("link", name="E-mails").click()
    await page.locator("#of-seat summary").click()
    await page.get_by_label("Your words in the e\N{NON-BREAKING HYPHEN}mail “Seat confirmed”").fill(
        "Bring a <b>pencil</b>.\nNow."
    )

    await page.get_by_role("button", name="Preview: Seat confirmed").click()

    mail = page.frame_locator("iframe[title$=English]")
    await expect(mail.locator("blockquote")).to_have_text("Bring a <b>pencil</b>. Now.")
    for language in ("English", "Deutsch"):
        words = page.frame_locator(f"iframe[title$={language}]").locator("blockquote")
        await expect(words).to_have_css("border-left-width", "3px")
    assert await mail.locator("img").evaluate("(picture) => picture.naturalWidth") > 200
    await mail.get_by_role("link", name="About the event").click()
    await page.get_by_role("button", name="Save: Seat confirmed").click()
    await expect(page.get_by_role("status")).to_have_text("Your paragraphs are saved.")
    stored = await stage.service.run_sql("select kind, text from mail_paragraphs")
    assert stored == [("seat", "Bring a <b>pencil</b>.\nNow.")]
    assert len(context.pages) == 1
    assert watch.hosts == {stage.base_url.split("/")[2]}


@parametrize_looks
async def test_pages_of_events_in_the_console_are_accessible_and_fit(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    keys = [key_of(stage.ada.id, letter) for letter in "ab"]
    await accept_photos(stage.service, *keys)
    event = await stage.ada.create_event(
        title="W" * 90, pricing_mode="fixed", price=1500, address="Studio Street 1", image_keys=keys
    )
    await stage.ada.patch(f"/api/events/{event['id']}", {"event": {"price": 2000}})
    await stage.ada.register(event["id"], email="ann@example.com")
    await stage.service.settle()
    context = await open_context(chromium, scheme, width, language)
    page = await sign_in(context, stage)
    home = f"{stage.base_url}/console"
    event_page = f"{home}/events/{event['id']}"

    async def look(name: str) -> None:
        if folder := os.environ.get("SHOTS"):
            await page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
        assert await too_wide(page) == [], name
        assert await violations(page) == [], name
        assert await page.evaluate("document.documentElement.lang") == language

    draft = await stage.ada.create_event(title="W" * 90, published=False)
    for name, address in {
        "list": home,
        "draft": f"{home}/events/{draft['id']}",
        "event": event_page,
        "new": f"{home}/events/new",
        "copy": f"{home}/events/new?copy={event['id']}",
        "cancel": f"{event_page}/cancel",
        "share": f"{event_page}/share",
        "photos": f"{event_page}/photos",
    }.items():
        await page.goto(address)
        await look(name)
    # The last of them is the page of photos.
    await page.locator("#files").set_input_files({"name": "W" * 60, "mimeType": "image/png", "buffer": b"x"})
    await page.locator("#files").set_input_files({"name": "b.jpg", "mimeType": "image/jpeg", "buffer": picture()})
    await expect(page.locator("#photos img")).to_have_count(3)
    await look("refused photo")
    await page.goto(f"{event_page}/mails")
    await look("mails")
    await page.locator("#of-promoted summary").click()
    await page.locator("#promoted").fill("Bring a pencil.\n" + "W" * 90)
    await page.locator("button[value=promoted]").click()
    await expect(page.locator("iframe")).to_have_count(2)
    await page.locator("#preview summary").first.click()
    await look("preview")
    await page.goto(f"{home}/events/new")
    await page.get_by_role("button", name="Publish").or_(page.get_by_role("button", name="Veröffentlichen")).click()
    await expect(page.locator("[aria-invalid]").first).to_be_visible()
    await look("wrong")
    await page.goto(f"{event_page}/edit")
    await look("edit")
    await page.locator("#datetime").fill("2016-07-12T19:30")
    await submit(page.locator("form[novalidate] button:not([data-plain])"))
    await look("moved into the past")
    await page.goto(f"{event_page}/edit")
    await stage.ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Changed by an agent", "capacity": 40}})
    await submit(page.locator("form[novalidate] button:not([data-plain])"))
    await look("changed")
