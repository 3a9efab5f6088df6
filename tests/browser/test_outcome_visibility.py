"""The browser that sent the registration form sees the outcome again, and another browser does not."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FrameLocator, Locator, Page, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.registering import FormStage, serve_stage

SEND = "form => fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)) }).then(a => a.url)"
"""Sends a form as its button does, and stays on the page."""


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings, capacity=3) as stage:
        yield stage


async def fill(page: Page | FrameLocator) -> Locator:
    await page.get_by_label("E-mail address").fill("ann@example.com")
    return page.locator("form")


async def press(page: Page | FrameLocator) -> None:
    await page.get_by_role("button", name="Register").click()


async def expect_outcome(page: Page | FrameLocator) -> None:
    await expect(page.get_by_role("heading", level=2)).to_have_text("We have received your registration.")


async def expect_known(page: Page | FrameLocator) -> None:
    await expect(page.get_by_role("heading", level=2)).to_have_text("This address is already registered.")


@pytest.mark.parametrize("framed", [False, True])
async def test_a_form_sent_twice_shows_the_outcome_and_one_sent_from_another_browser_does_not(
    chromium: Browser, stage: FormStage, framed: bool
) -> None:
    async def opened() -> Page | FrameLocator:
        page = await (await chromium.new_context()).new_page()
        await page.goto(stage.pasted if framed else stage.event["public_url"])
        return page.frame_locator("iframe") if framed else page

    page, other = await opened(), await opened()

    assert "/outcome" in await (await fill(page)).evaluate(SEND)
    await press(page)
    await expect_outcome(page)

    assert "/outcome" not in await (await fill(other)).evaluate(SEND)
    await press(other)
    await expect_known(other)


async def test_the_form_of_registration_shows_the_outcome_after_going_back_and_after_reloading(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    page = await context.new_page()
    await page.goto(stage.event["public_url"])
    await fill(page)
    await press(page)
    await expect_outcome(page)
    await page.reload()
    await expect_outcome(page)

    await page.go_back()
    await page.reload()
    await fill(page)
    await press(page)
    await expect_outcome(page)

    tab = await context.new_page()
    await tab.goto(stage.event["public_url"])
    await fill(tab)
    await press(tab)
    await expect_known(tab)
    assert await context.cookies() == []


async def test_the_outcome_is_shown_and_loads_again_without_scripts(chromium: Browser, stage: FormStage) -> None:
    page = await (await chromium.new_context(java_script_enabled=False)).new_page()
    await page.goto(stage.event["public_url"])
    await fill(page)
    await press(page)
    await expect_outcome(page)
    await stage.service.settle()
    await page.reload()
    await expect(page.get_by_role("heading", level=2)).to_have_text("You have a seat.")


@parametrize_looks
async def test_the_page_of_an_address_that_is_already_registered_is_accessible_and_fits(
    chromium: Browser, stage: FormStage, scheme: str, width: int, language: str
) -> None:
    await stage.ada.register(stage.event["id"], email="ann@example.com")
    page = await (await open_context(chromium, scheme, width, language)).new_page()
    await page.goto(stage.event["public_url"])
    await page.locator("#email").fill("ann@example.com")
    await page.locator("form button").click()

    await expect(page.locator("main[data-state=known]")).to_be_visible()
    assert await violations(page) == []
    assert not await too_wide(page)
