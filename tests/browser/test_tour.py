"""The tour of the README, step by step, in Chromium: everything is there that it tells people to look at."""

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.demonstration import Demonstration, run_demonstration
from tests.browser.looking import open_context
from tests.browser.registering import Watch
from tests.helpers.events_service import eventually

README = Path(__file__).parents[2] / "README.md"

JARS = {"Single": "44 in stock", "6-pack": "7 in stock", "12-pack": "Only 3 left"}


class Tour:
    """A reader who follows the tour."""

    def __init__(self, demonstration: Demonstration, context: BrowserContext) -> None:
        self.demonstration = demonstration
        self.context = context

    async def opens(self, name: str) -> Page:
        page = await self.context.new_page()
        await page.goto(self.demonstration.links[name])
        return page


async def event_page(tour: Tour) -> None:
    page = await tour.opens("event page")
    await register(page, "ann@example.com")
    await expect(page.get_by_role("heading", name="You have a seat.")).to_be_visible()
    await eventually(
        lambda: any("ann@example.com" in path.read_text() for path in tour.demonstration.mails.rglob("*.eml"))
    )
    mails = await tour.opens("mails")
    await mails.get_by_role("link", name="You have a seat").first.click()
    await expect(mails.frame_locator("iframe").get_by_role("heading", level=1)).to_contain_text("Open studio evening")


async def card_payment(tour: Tour) -> None:
    page = await tour.opens("card payment")
    await register(page, "ben@example.com")
    await page.get_by_role("link", name="Pay €12.50").click(timeout=20_000)
    await page.get_by_label("Card number").fill("4242 4242 4242 4242")
    await page.get_by_role("button", name="Pay").click()
    await expect(page.get_by_text("You have paid €12.50.")).to_be_visible()


async def waiting_room(tour: Tour) -> None:
    page = await tour.opens("waiting room")
    await page.wait_for_url("**/events/4/released*", timeout=30_000)
    await expect(page.get_by_role("heading", name="Lantern walk")).to_be_visible()


async def organizer(tour: Tour) -> None:
    page = await tour.opens("organizer")
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Events", exact=True).click()
    await page.get_by_role("link", name="Open studio evening").first.click()
    await page.get_by_role("link", name="Registrations").first.click()
    await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()

    await register(await tour.opens("event page"), "cem@example.com")
    await expect(page.get_by_role("link", name="cem@example.com")).to_be_visible(timeout=20_000)


async def merchant(tour: Tour) -> None:
    shop = await tour.opens("demo shop")
    await shop.get_by_role("link", name="See it live").click()
    await expect(shop.get_by_role("heading", level=1)).to_have_text("Your shop promises 182 jars. There are 50.")
    page = await tour.opens("merchant")
    await page.get_by_role("button", name="Install").click()
    app = page.frame_locator("iframe")
    await app.get_by_role("link", name="Honey jars", exact=True).click()
    await expect(app.get_by_text("50 units can be sold", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Agents").click()
    await expect(app.locator("#key")).to_contain_text("hf_")


async def storefront(tour: Tour) -> None:
    page = await tour.opens("storefront")
    await expect(page.locator("[data-variant]").filter(has_text="50 in stock").first).to_be_visible()
    sides = await tour.opens("demo shop")
    await sides.get_by_role("link", name="See it live").click()
    shop, visitor, merchant = (sides.frame_locator(f"iframe[name={name}]") for name in ("shop", "storefront", "app"))
    app = merchant.frame_locator("iframe")
    await expect(visitor.locator("[data-variant]").filter(has_text="50 in stock").first).to_be_visible()
    await expect(app.get_by_text("50 units can be sold")).to_be_visible()

    await shop.get_by_role("button", name="Sell one 6-pack").first.click()

    for jars in (page, visitor):
        for text in JARS.values():
            await expect(jars.locator("[data-variant]").filter(has_text=text).first).to_be_visible()
    await expect(app.get_by_text("44 units can be sold")).to_be_visible()
    for number in ("44", "7", "3"):
        await expect(shop.locator("#products strong").get_by_text(number, exact=True)).to_be_visible()
    await shop.get_by_role("link", name="Developers").click()
    await expect(shop.get_by_text("answered 200").first).to_be_visible()


async def register(page: Page, email: str) -> None:
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_role("button", name="Register").click()


STEPS: dict[str, Callable[[Tour], Awaitable[None]]] = {
    "event page": event_page,
    "card payment": card_payment,
    "waiting room": waiting_room,
    "organizer": organizer,
    "merchant": merchant,
    "storefront": storefront,
}


@pytest.fixture(scope="module")
def demonstration() -> Iterator[Demonstration]:
    with run_demonstration() as demonstration:
        yield demonstration


async def test_the_steps_of_the_tour_show_what_the_readme_says(chromium: Browser, demonstration: Demonstration) -> None:
    context = await open_context(chromium, "light", 1280, "en")
    watch = Watch(context)
    tour = Tour(demonstration, context)

    for name in re.findall(r"^\d\. \*\*(.+?)\*\*:", README.read_text(encoding="utf-8"), re.MULTILINE):
        await STEPS.pop(name)(tour)

    assert STEPS == {}
    assert watch.failures == []
    await context.close()
