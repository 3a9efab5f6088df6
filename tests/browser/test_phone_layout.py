"""On a phone in Chromium: words stay whole, the open part of an event is in view, and an empty page has a next step."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from holdfast.events.settings import Settings
from tests.browser.looking import SMALL
from tests.browser.registering import FormStage, serve_stage
from tests.browser.visitors import PHONE
from tests.events.console.organizing import sign_in_organizer

HEIGHT = 800


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def lines(text: Locator) -> float:
    """The number of lines that a text takes."""
    return await text.evaluate(
        "text => text.getBoundingClientRect().height / parseFloat(getComputedStyle(text).lineHeight)"
    )


@pytest.mark.parametrize("width", [SMALL, PHONE])
async def test_the_price_beside_the_way_to_the_waiting_list_stays_in_one_line(
    chromium: Browser, stage: FormStage, width: int
) -> None:
    ada = await stage.service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=4)
    await ada.register(event["id"], email="ann@example.com")
    await stage.service.settle()
    context = await chromium.new_context(viewport={"width": width, "height": HEIGHT}, locale="de-DE")
    page = await context.new_page()
    await page.goto(event["public_url"])

    bar = page.locator("#register_bar")

    await expect(bar.get_by_role("link")).to_have_text("Auf die Warteliste")
    await expect(page.get_by_role("heading", name="Auf die Warteliste")).to_be_visible()
    assert await lines(bar.locator("strong")) < 1.5
    assert await page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("part", ["", "/registrations", "/photos", "/edit"])
async def test_the_open_part_of_an_event_is_in_view_on_a_phone(chromium: Browser, stage: FormStage, part: str) -> None:
    ada, browser = await sign_in_organizer(stage.service)
    event = await ada.create_event(pricing_mode="fixed", price=1250, currency="EUR")
    context = await chromium.new_context(viewport={"width": SMALL, "height": HEIGHT}, locale="de-DE")
    for name, value in browser.http.cookies.items():
        await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}{part}")

    tabs = page.get_by_role("navigation", name="Diese Veranstaltung")

    await expect(tabs.locator("[aria-current=page]")).to_be_in_viewport(ratio=1)
    assert await lines(tabs.get_by_role("link").first) < 2.5
    assert await page.evaluate("document.documentElement.scrollWidth") == SMALL


async def test_an_organizer_without_events_has_an_empty_page_with_a_next_step(
    chromium: Browser, stage: FormStage
) -> None:
    await stage.service.organizer("Ada Events")
    [(slug,)] = await stage.service.run_sql("select slug from users where slug is not null order by id desc limit 1")
    context = await chromium.new_context(viewport={"width": PHONE, "height": HEIGHT})
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/organizers/{slug}")

    empty = page.locator(".empty")

    await expect(empty.get_by_role("link", name="Subscribe in your calendar")).to_be_in_viewport(ratio=1)
    icon = await empty.locator("> .icon").bounding_box()
    assert icon
    assert icon["width"] > 30
    assert await empty.evaluate("empty => getComputedStyle(empty).textAlign") == "center"


async def test_the_time_of_a_german_visitor_is_written_as_that_of_the_event(
    chromium: Browser, stage: FormStage
) -> None:
    ada = await stage.service.organizer()
    moments = {"datetime": "2036-01-12T18:00:00Z", "ends_at": "2036-01-12T22:00:00Z", "timezone": "Europe/Berlin"}
    event = await ada.create_event(**moments)
    context = await chromium.new_context(timezone_id="UTC", locale="de-DE")
    page = await context.new_page()
    await page.goto(event["public_url"])

    await expect(page.locator("[data-moment]")).to_have_text("Bei Ihnen: 18:00\N{EN DASH}22:00")
    await expect(page.locator(".facts-with-icons time").first).to_contain_text("19:00\N{EN DASH}23:00 MEZ")
