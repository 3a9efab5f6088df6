"""In two browsers: what one person does appears on the page that another one looks at, brought by a stream."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.events.settings import Settings
from tests.browser.registering import Stage, Watch, staged
from tests.events.console.organizing import signed_in
from tests.events.people.scene import sign_up
from tests.support import Client


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[Stage]:
    async with staged(settings, capacity=3, waitinglist_capacity=2) as stage:
        yield stage


async def organizer(stage: Stage, context: BrowserContext) -> Client:
    """An organizer who is signed in in a browser."""
    ada, browser = await signed_in(stage.service)
    for name, value in browser.http.cookies.items():
        await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
    return ada


async def open_live(context: BrowserContext, url: str, stream: str) -> Page:
    """Open a page, and wait until it follows its stream."""
    page = await context.new_page()
    async with page.expect_response(lambda response: stream in response.url) as opened:
        await page.goto(url)
    response = await opened.value
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
    return page


def fetches(page: Page) -> list[str]:
    """The addresses that scripts of a page fetch from now on."""
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url) if request.resource_type == "fetch" else None)
    return urls


async def register(chromium: Browser, stage: Stage, event: dict[str, Any], email: str) -> None:
    """A visitor in another browser registers on the page of an event."""
    page = await (await chromium.new_context()).new_page()
    await page.goto(event["public_url"])
    await page.get_by_label("E-mail address").fill(email)
    async with page.expect_navigation():
        await page.get_by_label("E-mail address").press("Enter")
    await stage.service.settle()


async def test_a_registration_appears_on_the_page_of_the_event(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context(reduced_motion="no-preference")
    watch = Watch(context)
    page = await open_live(context, stage.event["public_url"], "/stream")
    loads = fetches(page)
    left = page.locator("[data-count=left]")
    await expect(left).to_have_text("3 seats left")

    await register(chromium, stage, stage.event, "ann@example.com")

    await expect(left).to_have_text("2 seats left")
    await expect(left).to_have_class("changed")
    await expect(left).not_to_have_class("changed")
    await register(chromium, stage, stage.event, "bob@example.com")
    await expect(left).to_have_text("1 seat left")
    assert loads == []
    assert watch.failures == []


async def test_nothing_flashes_for_who_wants_no_motion(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context(reduced_motion="reduce", locale="de-DE")
    page = await open_live(context, stage.event["public_url"], "/stream")
    await page.evaluate(
        """() => {
          window.flashes = 0;
          new MutationObserver((changes) => { window.flashes += changes.length; })
            .observe(document.body, { subtree: true, attributeFilter: ["class"] });
        }"""
    )

    await register(chromium, stage, stage.event, "ann@example.com")

    await expect(page.locator("[data-count=left]")).to_have_text("Noch 2 Plätze frei")
    assert await page.evaluate("window.flashes") == 0


async def test_a_form_that_is_being_filled_in_stays_and_says_that_the_last_seat_has_gone(
    chromium: Browser, stage: Stage
) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.event["public_url"], "/stream")
    await page.get_by_label("E-mail address").fill("zoe@example.com")

    await sign_up(stage.service, stage.event, "ann", "bob", "cleo")

    await expect(page.get_by_role("button", name="Join the waiting list")).to_be_visible()
    await expect(page.get_by_text("Every seat is taken. You can join the waiting list")).to_be_visible()
    await expect(page.get_by_label("E-mail address")).to_have_value("zoe@example.com")
    await expect(page.get_by_label("E-mail address")).to_be_focused()


async def test_a_form_in_a_frame_closes_when_nobody_can_register(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.pasted, "/embed/stream")
    frame = page.frame_locator("iframe")
    await expect(frame.get_by_role("button", name="Register")).to_be_visible()

    await sign_up(stage.service, stage.event, *(f"p{number}" for number in range(5)))

    await expect(frame.get_by_text("Every seat is taken, and the waiting list is full.")).to_be_visible()
    await expect(frame.get_by_role("button")).to_have_count(0)


async def test_a_page_whose_event_is_cancelled_says_so_and_asks_no_more(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.event["public_url"], "/stream")
    loads = fetches(page)

    await stage.ada.delete(f"/api/events/{stage.event['id']}")

    await expect(page.get_by_text("This event is cancelled. Nobody can register any more.")).to_be_visible()
    await page.wait_for_function("hasEnded && !events")
    assert loads == []


async def test_a_page_that_is_refused_a_stream_polls(chromium: Browser, settings: Settings) -> None:
    context = await chromium.new_context()
    async with staged(settings.model_copy(update={"streams_per_organizer": 0}), capacity=3) as stage:
        ada = await organizer(stage, context)
        event = await ada.create_event(capacity=3)
        page = await context.new_page()
        async with page.expect_response(lambda response: "/stream" in response.url) as opened:
            await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")
        assert (await opened.value).status == 429

        await sign_up(stage.service, event, "ann")

        await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()


async def test_a_registration_appears_in_the_list_of_events(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.locator(f"[data-count=taken-{event['id']}]")).to_have_text("1 of 3 seats taken")
    other = await ada.create_event(title="Watercolours")
    await expect(page.get_by_role("link", name="Watercolours", exact=True)).to_be_visible()
    assert other["id"] != event["id"]


async def test_a_registration_appears_on_the_console_page_of_the_event(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console/events/{event['id']}", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.locator("[data-count=taken]")).to_have_text("1 of 3 seats taken")


async def test_a_registration_appears_in_the_list_of_registrations(chromium: Browser, stage: Stage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console/events/{event['id']}/registrations", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()
