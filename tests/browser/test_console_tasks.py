"""What an organizer does without a hint, counted in clicks, fields and seconds: `pytest -s` prints them."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.entrance import register_organizer, sign_in, stored_scans
from tests.browser.looking import session_cookie
from tests.browser.person import at_task
from tests.browser.registering import FormStage, serve_stage
from tests.helpers.people import sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def at_home(context: BrowserContext, stage: FormStage) -> Page:
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console")
    return page


async def test_an_organizer_finds_the_people_who_have_not_paid(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event(title="Wine tasting", pricing_mode="fixed", price=2500, currency="EUR", capacity=50)
    for name, amount in (("ann", 2500), ("bob", 0), ("cleo", 2500)):
        await ada.register(event["id"], email=f"{name}@example.com", amount_paid=amount)
    await stage.service.settle()
    context = await chromium.new_context()
    page = await at_home(context, stage)

    async with at_task(context, "find who has not paid") as person:
        await person.click(page.get_by_role("link", name="Wine tasting"))
        await person.click(page.get_by_role("link", name="Registrations", exact=True))
        await person.click(page.get_by_role("link", name="Not paid"))
        await expect(page.get_by_role("row")).to_have_count(2)  # with the head

    await expect(page.get_by_role("row").nth(1)).to_contain_text("bob@example.com")
    assert person.clicks == 3


async def test_an_organizer_lets_in_a_person_without_a_code(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event(title="Wine tasting", capacity=50)
    await sign_up(stage.service, event, "ann", "bob")
    context = await chromium.new_context()
    page = await at_home(context, stage)

    async with at_task(context, "let a person in at the door") as person:
        await person.click(page.get_by_role("link", name="Wine tasting"))
        await person.click(page.get_by_role("link", name="Check-in", exact=True))
        await person.enter(page.get_by_label("Address or name"), "bob")
        await person.press(page.get_by_label("Address or name"), "Enter")
        await person.click(page.get_by_role("button", name="Check in Bob Example"))
        await expect(page.locator("#verdict")).to_contain_text("Valid")

    assert person.clicks == 4
    assert await stored_scans(stage) == [("bob", "Door 1", True)]


async def test_the_form_of_an_event_is_embedded_in_the_site_of_an_organizer(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    service = stage.service
    await service.run_sql("update users set proved_at = now()")
    secret = await service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "link", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console")

    async with at_task(context, "put the form into ones own site") as person:
        await person.click(page.get_by_role("link", name=stage.event["title"]))
        await person.click(page.get_by_role("link", name="Put the form on your site"))
        await person.click(page.locator("button[data-copies=share-code]"))
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()

    assert person.clicks == 3
    assert await page.evaluate("navigator.clipboard.readText()") == stage.event["embed_code"]
    await page.goto(stage.pasted)  # a site with this code
    await expect(page.frame_locator("iframe").get_by_label("E-mail address")).to_be_visible()
