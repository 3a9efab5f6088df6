"""What an organizer does without a hint, counted in clicks and seconds: `pytest -s` prints them."""

import time
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from holdfast.events.settings import Settings
from tests.browser.entrance import organized, sign_in, stored
from tests.browser.registering import Stage, staged
from tests.events.people.scene import sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[Stage]:
    async with staged(settings) as stage:
        yield stage


class Counter:
    """Clicks, and the seconds since the page was open."""

    def __init__(self) -> None:
        self.clicks = 0
        self.began = time.monotonic()

    async def click(self, element: Locator) -> None:
        self.clicks += 1
        await element.click()

    def report(self, task: str) -> None:
        print(f"{task}: {self.clicks} clicks, {time.monotonic() - self.began:.1f} s")


async def at_home(chromium: Browser, stage: Stage) -> Page:
    context = await chromium.new_context()
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console")
    return page


async def test_who_has_not_paid_is_found(chromium: Browser, stage: Stage) -> None:
    ada = await organized(stage)
    event = await ada.create_event(title="Wine tasting", pricing_mode="fixed", price=2500, currency="EUR", capacity=50)
    for name, amount in (("ann", 2500), ("bob", 0), ("cleo", 2500)):
        await ada.register(event["id"], email=f"{name}@example.com", amount_paid=amount)
    await stage.service.settle()
    page = await at_home(chromium, stage)
    counter = Counter()

    await counter.click(page.get_by_role("link", name="Wine tasting"))
    await counter.click(page.get_by_role("link", name="Registrations", exact=True))
    await counter.click(page.get_by_role("link", name="Not paid"))

    await expect(page.get_by_role("row")).to_have_count(2)  # with the head
    await expect(page.get_by_role("row").nth(1)).to_contain_text("bob@example.com")
    counter.report("find who has not paid")
    assert counter.clicks == 3


async def test_somebody_without_a_code_is_let_in_at_the_door(chromium: Browser, stage: Stage) -> None:
    ada = await organized(stage)
    event = await ada.create_event(title="Wine tasting", capacity=50)
    await sign_up(stage.service, event, "ann", "bob")
    page = await at_home(chromium, stage)
    counter = Counter()

    await counter.click(page.get_by_role("link", name="Wine tasting"))
    await counter.click(page.get_by_role("link", name="Check-in", exact=True))
    await page.get_by_label("Address or name").fill("bob")
    await page.get_by_label("Address or name").press("Enter")
    await counter.click(page.get_by_role("button", name="Check in Bob Example"))

    await expect(page.locator("#verdict")).to_contain_text("Valid")
    counter.report("let somebody in at the door")
    assert counter.clicks == 3
    assert await stored(stage) == [("bob", "By name", True)]
