"""An organizer copies what the console gives to share an event, and looks at the form in a frame, in Chromium."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.looking import session_cookie, violations
from tests.browser.registering import FormStage, Watch, serve_stage


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings, title="Life drawing") as stage:
        yield stage


async def test_the_link_and_the_form_are_copied_and_seen(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    watch = Watch(context)
    service = stage.service
    await service.run_sql("update users set proved_at = now()")
    secret = await service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "link", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{stage.event['id']}")
    await page.get_by_role("link", name="Put the form on your site").click()
    copied: list[str] = []

    for id in ("share-link", "share-code"):
        button = page.locator(f"button[data-copies={id}]")
        await button.click()
        await expect(button).to_have_text("Copied")
        copied.append(await page.evaluate("navigator.clipboard.readText()"))
    clean = await violations(page)
    frame = page.frame_locator("iframe")

    assert copied == [stage.event["public_url"], stage.event["embed_code"]]
    assert clean == []
    await expect(frame.get_by_label("E-mail address")).to_be_visible()
    # The frame is as high as the form.
    await expect(page.locator("iframe")).not_to_have_css("height", "640px")
    assert await page.frames[1].evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert await violations(page) == []
    assert watch.failures == []


async def test_a_new_key_is_copied(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await stage.service.run_sql("update users set proved_at = now()")
    secret = await stage.service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "link", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/agents")
    await page.get_by_text("Create a key", exact=True).first.click()
    await page.locator("#name").fill("Till")
    await page.locator("#name").press("Enter")

    await page.get_by_role("button", name="Copy the key").click()

    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == await page.locator("#key").inner_text()
