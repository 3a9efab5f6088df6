"""An organizer finds an event while typing, and by the button where scripts do not run."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.entrance import register_organizer, sign_in
from tests.browser.looking import with_and_without_scripts
from tests.browser.registering import FormStage, Watch, serve_stage


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


@with_and_without_scripts
async def test_an_event_is_found_by_a_part_of_its_title(chromium: Browser, stage: FormStage, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    ada = await register_organizer(stage)
    for title in ("Wine tasting", "Life drawing"):
        await ada.create_event(title=title)
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console")
    await expect(page.get_by_role("link", name="Life drawing")).to_be_visible()

    await page.get_by_label("Title").fill("wine")
    if not scripts:
        await page.get_by_role("button", name="Search").click()

    await expect(page.get_by_role("link", name="Life drawing")).to_be_hidden()
    await expect(page.get_by_role("link", name="Wine tasting")).to_be_visible()
    assert page.url.endswith("/console?q=wine")
    await page.get_by_label("Title").fill("nothing")
    if not scripts:
        await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_text("No event has this in its title.")).to_be_visible()
    assert watch.failures == []
