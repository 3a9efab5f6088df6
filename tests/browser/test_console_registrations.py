"""In Chromium an organizer watches registrations arrive, and adds, moves and removes people."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.looking import (
    LOCALES,
    open_context,
    parametrize_looks,
    too_wide,
    violations,
    with_and_without_scripts,
)
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client
from tests.helpers.people import sign_up

MAX_FIRST_ROW_PIXELS = 450
"""The first row of a list begins above it on a phone."""

LONG = "Life drawing with a live model " + "W" * 60


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def sign_in(stage: FormStage, context: BrowserContext) -> Client:
    """An organizer who is signed in in a browser."""
    ada, browser = await sign_in_organizer(stage.service)
    for name, value in browser.http.cookies.items():
        await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
    return ada


async def test_registrations_from_elsewhere_appear_without_a_reload(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    watch = Watch(context)
    ada = await sign_in(stage, context)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(stage.service, event, "ann")
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))
    await page.get_by_role("link", name="ann@example.com").focus()

    await sign_up(stage.service, event, "bob")

    await expect(page.get_by_role("row").nth(1)).to_contain_text("bob@example.com")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Waiting list, place 1")
    await expect(page.get_by_text("1 of 5 places on the waiting list taken")).to_be_visible()
    await expect(page.get_by_role("link", name="ann@example.com")).to_be_focused()
    await expect(page.get_by_role("link", name="Reload")).to_be_hidden()
    assert await violations(page) == []
    assert loads == []
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


async def test_the_list_of_registrations_on_a_phone_shows_name_and_status_of_a_person_at_once(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context(viewport={"width": 390, "height": 844})
    ada = await sign_in(stage, context)
    event = await ada.create_event(capacity=1, waitinglist_capacity=1, pricing_mode="fixed", price=1250, currency="EUR")
    for name in ("ann", "l" * 50):
        await ada.register(event["id"], email=f"{name}@example.com")
    await stage.service.settle()
    await stage.service.run_sql("update registrations set name = 'Ann Bell'")
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")

    await page.evaluate("document.querySelector('table').scrollIntoView()")
    for row in await page.locator("tbody tr").all():
        for content in (row.get_by_text("Ann Bell"), row.locator(".chip"), row.get_by_role("checkbox")):
            await expect(content).to_be_in_viewport(ratio=1)
    await page.locator("tbody tr").first.get_by_role("checkbox").check()
    await page.evaluate("scrollTo(0, 200)")
    await expect(page.get_by_role("button", name="Check in")).to_be_in_viewport(ratio=1)
    everybody = page.get_by_label("Choose all on this page")
    await expect(everybody).to_have_js_property("indeterminate", True)
    await everybody.check()
    assert [await box.is_checked() for box in await page.locator("tbody").get_by_role("checkbox").all()] == [True, True]
    # A tap on the card, beside the words, opens the person.
    await page.locator("tbody tr").first.click(position={"x": 330, "y": 20})
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ann Bell")
    await expect(page.get_by_text(f"{'l' * 50}@example.com", exact=True)).to_be_visible()


@pytest.mark.parametrize("locale", LOCALES.values())
async def test_the_list_of_registrations_on_a_phone_has_the_first_person_on_the_first_screen(
    chromium: Browser, stage: FormStage, locale: str
) -> None:
    context = await chromium.new_context(viewport={"width": 390, "height": 844}, locale=locale)
    ada = await sign_in(stage, context)
    event = await ada.create_event(title=LONG, capacity=12, waitinglist_capacity=6)
    await sign_up(stage.service, event, "ann")
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")

    box = await page.locator("tbody tr").first.bounding_box()

    assert box
    assert box["y"] < MAX_FIRST_ROW_PIXELS


async def test_a_person_opens_beside_the_list_on_a_desktop_and_follows_changes(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    watch = Watch(context)
    ada = await sign_in(stage, context)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(stage.service, event, "ann", "bob")
    page = await context.new_page()
    path = f"{stage.base_url}/console/events/{event['id']}/registrations"
    await page.goto(path)
    side = page.get_by_role("complementary", name="The chosen person")
    await expect(side).to_be_hidden()

    await page.get_by_role("link", name="bob@example.com").click()
    await expect(side.get_by_role("heading", level=2).first).to_have_text("Bob Example")
    await expect(side).to_contain_text("Waiting list, place 1")
    assert await violations(page) == []
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})
    await stage.service.settle()
    await expect(side).to_contain_text("Moved up from the waiting list")
    await page.keyboard.press("Escape")

    await expect(side).to_be_hidden()
    await expect(page.get_by_role("link", name="bob@example.com")).to_be_focused()
    assert page.url == path
    await page.get_by_role("link", name="ann@example.com").click()
    await side.get_by_role("button", name="Check in").click()
    await expect(page.get_by_text("The person is checked in.")).to_be_visible()
    assert watch.failures == []


async def test_a_list_that_cannot_be_updated_says_so(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    ada = await sign_in(stage, context)
    event = await ada.create_event()
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")

    await context.set_offline(True)

    lost = page.get_by_role("status").get_by_text("The list could not be brought up to date.")
    await expect(page.get_by_role("status")).to_have_text(
        "The list could not be brought up to date. It is tried again."
    )
    await expect(page.get_by_role("status")).not_to_have_class("unseen")
    await context.set_offline(False)
    await sign_up(stage.service, event, "ann")
    await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()
    await expect(lost).to_be_hidden()


async def test_a_live_page_leads_to_sign_in_after_the_organizer_is_signed_out_elsewhere(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    ada = await sign_in(stage, context)
    event = await ada.create_event()
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")

    await stage.service.database.transact(lambda tx: sessions.end(tx, ada.id))

    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@with_and_without_scripts
async def test_people_are_added_moved_and_removed(chromium: Browser, stage: FormStage, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    ada = await sign_in(stage, context)
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console")

    await page.get_by_role("link", name="Life drawing").click()
    await page.get_by_role("link", name="Registrations", exact=True).click()
    await page.get_by_role("link", name="Add a person").click()
    await page.get_by_label("E-mail address").fill("ann@example.com")
    await page.get_by_role("button", name="Add the person").click()
    await expect(page.get_by_text("Pending", exact=True)).to_be_visible()
    await stage.service.settle()
    if not scripts:
        await page.reload()
    await expect(page.get_by_text("Seat", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Move to the waiting list …").click()
    await page.get_by_role("button", name="Move to the waiting list").click()
    await expect(page.get_by_text("Waiting list, moved there by you")).to_be_visible()
    await page.get_by_role("button", name="Give a seat").click()
    await expect(page.get_by_text("Seat", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Remove …").click()
    await page.get_by_role("button", name="Remove the registration").click()
    await expect(page.get_by_role("status").first).to_have_text("The registration is removed.")
    await expect(page.get_by_text("Nobody is registered yet.")).to_be_visible()
    await sign_up(stage.service, event, "bob", "cleo")
    if scripts:
        await expect(page.get_by_role("link", name="cleo@example.com")).to_be_visible()
    else:
        await page.get_by_role("link", name="Reload").click()
    await page.get_by_label("Address or name").fill("bob")
    await page.get_by_label("Address or name").press("Enter")

    await expect(page.get_by_role("row")).to_have_count(2)  # with the head
    await expect(page.get_by_label("Choose all on this page")).to_be_visible(visible=scripts)
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Export as CSV").click()
    file = await download.value
    assert file.suggested_filename == f"registrations-{event['id']}.csv"
    assert b"bob@example.com" in (await file.path()).read_bytes()
    assert watch.failures == []


@parametrize_looks
async def test_pages_of_registrations_are_accessible_and_fit(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    ada = await sign_in(stage, context)
    event = await ada.create_event(
        title=LONG, capacity=2, waitinglist_capacity=1, pricing_mode="fixed", price=1250, currency="EUR"
    )
    for name in ("ann", "l" * 60, "cleo", "dan"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await stage.service.run_sql("update registrations set name = %(name)s", name="Wolfeschlegelsteinhausen" * 4)
    await stage.service.settle()
    await stage.service.run_sql("update events set waitinglist_capacity = 2 where id = %(id)s", id=event["id"])
    await ada.register(event["id"], email="eve@example.com")
    page = await context.new_page()
    path = f"{stage.base_url}/console/events/{event['id']}/registrations"

    async def look(address: str) -> None:
        await page.goto(address)
        assert await too_wide(page) == [], address
        assert await violations(page) == [], address
        assert await page.evaluate("document.documentElement.lang") == language

    await look(path)
    handles = [await link.get_attribute("id") for link in await page.locator("tbody th > a").all()]
    for handle in handles:
        await look(f"{path}/{str(handle).removeprefix('of-')}")
        await look(f"{path}/{str(handle).removeprefix('of-')}?do=remove")
    chosen = "&".join(f"p-{str(handle).removeprefix('of-')}=1" for handle in handles)
    await look(f"{path.replace('registrations', 'several-registrations')}?do=remove&{chosen}")
    await page.locator("main button.danger").click()
    assert await violations(page) == []
    await look(f"{path}?sort=paid")
    await look(path.replace("registrations", "add-registration"))
    await page.locator("#email").fill("nobody")
    await page.locator("#email").press("Enter")
    await expect(page.locator("#email")).to_have_attribute("aria-invalid", "true")
    assert await violations(page) == []
    await look(f"{path}?q=zzz")
    await look(f"{path}?done=removed&state=waitlisted")

    assert len(handles) == 5
