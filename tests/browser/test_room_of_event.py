"""Guests in Chromium go from the page of an event through its waiting room, and register when they are let in."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from playwright.async_api import Browser, FrameLocator, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from holdfast.events.queues import release
from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations, with_and_without_scripts
from tests.events.queues.guarded import GuardedEvent, guard
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import running_events
from tests.helpers.serving import bind_port, running_already, serve_app


@dataclass
class RoomScene:
    """An event behind a port, with a waiting room that lets in one guest each second, and a page around its form."""

    guarded: GuardedEvent
    event: str
    site: str


@pytest_asyncio.fixture(loop_scope="session")
async def entrance(settings: Settings) -> AsyncIterator[RoomScene]:
    service_port, site_port = bind_port(), bind_port()
    base_url, site = service_port.url, site_port.url
    async with running_events(settings.model_copy(update={"base_url": base_url})) as service:
        guarded = await guard(service)

        async def host(_: Request) -> HTMLResponse:
            return HTMLResponse(f"<h1>My site</h1>{(await guarded.event())['embed_code']}")

        async with (
            serve_app(running_already(service.app), service_port),
            serve_app(Starlette(routes=[Route("/", host)]), site_port),
            run_in_background(release.LOOP.run(service.database)),
        ):
            yield RoomScene(guarded, (await guarded.event())["public_url"], site)


async def register(page: Page | FrameLocator, email: str) -> None:
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_role("button", name="Register").click()


@with_and_without_scripts
async def test_a_guest_waits_is_let_in_and_registers(chromium: Browser, entrance: RoomScene, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts, locale="en-US", reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(entrance.event)
    await expect(page.get_by_label("E-mail address")).to_have_count(0)

    await page.locator("#to_waiting_room").click()
    await page.wait_for_url("**/released*", timeout=60_000)
    await expect(page.locator("#your_turn")).to_contain_text("It is your turn. You can register one person until")
    await register(page, "ann@example.com")

    await expect(page.get_by_role("heading", name="We have received your registration.")).to_be_visible()
    assert await entrance.guarded.registered_addresses() == {"ann@example.com"}
    await page.goto(entrance.event)
    await expect(page.locator("#to_waiting_room")).to_be_visible()
    await context.close()


async def test_a_guest_in_a_frame_stays_in_the_frame(chromium: Browser, entrance: RoomScene) -> None:
    page = await (await chromium.new_context(locale="en-US", reduced_motion="reduce")).new_page()
    await page.goto(entrance.site)
    frame = page.frame_locator("iframe")

    await frame.locator("#to_waiting_room").click()
    await expect(frame.locator("#your_turn")).to_be_visible(timeout=60_000)
    await register(frame, "ben@example.com")

    await expect(frame.get_by_role("heading", name="We have received your registration.")).to_be_visible()
    assert page.url.rstrip("/") == entrance.site
    assert await entrance.guarded.registered_addresses() == {"ben@example.com"}


async def test_an_open_page_follows_the_room(chromium: Browser, entrance: RoomScene) -> None:
    page = await (await chromium.new_context(locale="en-US", reduced_motion="reduce")).new_page()
    await page.goto(entrance.event)
    room = page.locator("#waiting_room")
    await expect(room).to_contain_text("Nobody is waiting now.")

    await entrance.guarded.queue.change(active=False)
    await expect(room).to_contain_text("The waiting room is paused at the moment.", timeout=15_000)
    await entrance.guarded.ada.delete(entrance.guarded.queue.path)
    await expect(page.get_by_label("E-mail address")).to_be_visible(timeout=15_000)


@parametrize_looks
async def test_pages_of_a_guarded_event_are_accessible_and_fit(
    chromium: Browser, entrance: RoomScene, scheme: str, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    page = await context.new_page()
    for address in (entrance.event, f"{entrance.event.partition('/organizers')[0]}/events/{entrance.guarded.id}/embed"):
        await page.goto(address)
        await expect(page.locator("#waiting_room")).to_be_visible()
        assert await too_wide(page) == []
        assert await violations(page) == []
    await page.goto(entrance.event)
    await page.locator("#to_waiting_room").click()
    await page.wait_for_url("**/released*", timeout=60_000)
    assert await too_wide(page) == []
    assert await violations(page) == []
    await context.close()
