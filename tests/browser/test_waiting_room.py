"""Visitors in Chromium watch their position fall, and the connector of the shop lets them in."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Error, Page, Response, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from holdfast.events.queues import release
from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations, with_and_without_scripts
from tests.docs.connectors import load_python_connector
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import running_events
from tests.helpers.serving import bind_port, running_already, serve_app


@dataclass
class GuardedShop:
    """A shop behind a waiting room that lets in one visitor every two seconds, and trusts the connector alone."""

    queue: QueueScene
    room: str
    url: str
    let_in: list[str] = field(default_factory=list[str])
    refusals: list[str] = field(default_factory=list[str])


@pytest_asyncio.fixture(loop_scope="session")
async def shop(settings: Settings) -> AsyncIterator[GuardedShop]:
    service_port, site_port = bind_port(), bind_port()
    base_url, shop_url = service_port.url, site_port.url
    settings = settings.model_copy(update={"base_url": base_url, "queue_interval": 2})
    async with running_events(settings) as service:
        queue = await open_queue(service, release_rate=1, target_url=f"{shop_url}/sale?item=7")
        shop = GuardedShop(queue, f"{base_url}/queues/{queue.id}", shop_url)
        connector = load_python_connector()
        door = connector.QueueDoor(base_url, queue.id)

        async def sale(request: Request) -> HTMLResponse:
            try:
                visitor = await asyncio.to_thread(door.visitor, request.query_params.get("queue_token", ""))
            except connector.TokenRefusal as refusal:
                shop.refusals.append(refusal.reason)
                return HTMLResponse("<h1>Please join the queue first.</h1>", 403)
            shop.let_in.append(visitor)
            return HTMLResponse(f"<h1>Welcome</h1><p>Item {request.query_params['item']}</p>")

        async def front(_: Request) -> HTMLResponse:
            script = "addEventListener('message', (event) => { document.title = JSON.stringify(event.data) })"
            return HTMLResponse(f'<iframe src="{shop.room}/embed" title="Queue"></iframe><script>{script}</script>')

        front_of_shop = Starlette(routes=[Route("/sale", sale), Route("/", front)])
        async with (
            serve_app(running_already(service.app), service_port),
            serve_app(front_of_shop, site_port),
            run_in_background(release.LOOP.run(service.database)),
        ):
            yield shop


@dataclass
class WaitingVisitor:
    """A visitor at a browser, the positions that were shown, and how often each address was requested."""

    page: Page
    positions: list[int] = field(default_factory=list[int])
    requests: Counter[str] = field(default_factory=Counter[str])
    ticket: int = 0

    async def see(self, response: Response) -> None:
        self.requests[response.url] += 1
        if response.status == 200 and re.search(r"/queues/\d+(/progress)?$", response.url):
            # Chromium drops the text of a page that the visitor has left already.
            with contextlib.suppress(Error):
                text = await response.text()
                match = re.search(r'id="position"[^>]*>([\d,]+)<', text)
                self.positions += [int(match[1].replace(",", ""))] if match else []
                # A page with scripts computes its position from its ticket.
                ticket = re.search(r'data-ticket="(\d+)"', text)
                self.ticket = int(ticket[1]) if ticket else self.ticket
                serving = re.search(r'data-serving="(\d+)"', text)
                self.positions += [self.ticket - int(serving[1])] if serving else []


async def visitor(context: BrowserContext) -> WaitingVisitor:
    visitor = WaitingVisitor(await context.new_page())
    visitor.page.on("response", visitor.see)
    return visitor


@with_and_without_scripts
async def test_ten_visitors_watch_their_position_fall_and_are_let_in(
    chromium: Browser, shop: GuardedShop, scripts: bool
) -> None:
    # Ten rings that breathe at once would cost more than all else that these browsers do.
    contexts = [await chromium.new_context(java_script_enabled=scripts, reduced_motion="reduce") for _ in range(10)]
    visitors = [await visitor(context) for context in contexts]

    await asyncio.gather(*(visitor.page.goto(shop.room) for visitor in visitors))
    await asyncio.gather(*(visitor.page.wait_for_url(f"{shop.url}/**", timeout=60_000) for visitor in visitors))

    for waiting in visitors:
        # The page itself comes at first, with the place, and when it is let in. What is the same for all comes between.
        assert not scripts or waiting.requests[shop.room] <= 4
        await expect(waiting.page.locator("h1")).to_have_text("Welcome")
        await expect(waiting.page.locator("p")).to_have_text("Item 7")
        assert waiting.positions == sorted(waiting.positions, reverse=True)
    assert len(set(shop.let_in)) == 10
    assert shop.refusals == []
    # Visitors who came late have seen the queue move.
    assert max(len(set(visitor.positions)) for visitor in visitors) >= 3
    tickets = dict(await shop.queue.service.run_sql("select visitor_id, ticket from queue_visitors"))
    assert sorted(tickets[visitor_id] for visitor_id in shop.let_in) == list(range(1, 11))
    for context in contexts:
        await context.close()


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_room_of_an_unproved_organizer_names_the_host_and_waits_for_a_click(
    chromium: Browser, shop: GuardedShop, scripts: bool
) -> None:
    await shop.queue.service.run_sql("update users set proved_at = null where id = %(id)s", id=shop.queue.ada.id)
    context = await chromium.new_context(java_script_enabled=scripts, viewport={"width": 320, "height": 700})
    page = await context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await page.goto(shop.room)

    await expect(page.locator("main[data-state=released] .note strong")).to_have_text(
        shop.url.removeprefix("http://"), timeout=30_000
    )
    assert not [url for url in requests if url.startswith(shop.url)]
    if scripts:
        assert await too_wide(page) == []
        assert (await violations(page)) == []
    await page.get_by_role("link", name="Continue").click()

    await expect(page.locator("h1")).to_have_text("Welcome")
    assert shop.refusals == []


async def test_a_shop_refuses_a_visitor_without_a_token(chromium: Browser, shop: GuardedShop) -> None:
    page = await (await chromium.new_context()).new_page()
    response = await page.goto(f"{shop.url}/sale?item=7")

    assert response
    assert response.status == 403
    assert shop.refusals == ["missing"]
    assert shop.let_in == []


async def test_a_page_that_is_closed_and_opened_again_keeps_its_place_in_the_queue(
    chromium: Browser, shop: GuardedShop
) -> None:
    await shop.queue.change(release_rate=1, starts_at="2099-01-01T00:00:00Z")
    await shop.queue.join("ann", "ben")
    context = await chromium.new_context()
    for _ in range(2):
        page = await context.new_page()
        await page.goto(shop.room)
        await expect(page.locator("#position")).to_have_text("3")
        await page.reload()
        await expect(page.locator("#position")).to_have_text("3")
        await page.close()
    assert await shop.queue.length() == 3


async def test_the_page_of_a_queue_stays_in_the_chosen_language_and_says_in_it_when_it_is_offline(
    chromium: Browser, shop: GuardedShop
) -> None:
    # The page of a visitor who waits for less than a minute looks again every five seconds.
    await shop.queue.join(*(f"visitor{number}" for number in range(25)))
    context = await chromium.new_context(locale="en-GB")
    page = await context.new_page()
    await page.goto(shop.room)
    await expect(page.locator("#wait")).to_contain_text("Your turn comes within")
    await page.get_by_role("link", name="Deutsch").click()

    position = await page.locator("#position").inner_text()
    await expect(page.locator("#position")).not_to_have_text(position, timeout=30_000)

    await expect(page.locator("#wait")).to_contain_text("an der Reihe.")
    await expect(page.locator("time[data-clock]")).to_have_text(re.compile(r"^\d{1,2}:\d\d:\d\d(\s[AP]M)?$"))
    await context.set_offline(True)
    await expect(page.locator("main > .soft")).to_contain_text("Zurzeit keine Verbindung.", timeout=40_000)
    await expect(page.locator("#position")).to_be_visible()
    await context.close()


async def test_the_way_in_is_announced_as_a_link_in_a_frame(chromium: Browser, shop: GuardedShop) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(shop.url)
    frame = page.frame_locator("iframe")

    await expect(frame.locator("h2")).to_have_text("It is your turn.", timeout=30_000)
    assert re.match(r'\{"type":"queue.released","token":"[\w.-]+","url":"http://127', await page.title())
    await frame.locator("#enter").press("Enter")

    await expect(page.locator("h1")).to_have_text("Welcome")


async def test_the_page_of_a_queue_may_not_be_framed_itself(chromium: Browser, shop: GuardedShop) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(shop.url)
    await page.evaluate("room => document.querySelector('iframe').src = room", shop.room)

    await expect(page.frame_locator("iframe").locator("main")).to_have_count(0)


@parametrize_looks
async def test_every_state_of_the_page_is_accessible_and_fits_small_screens(
    chromium: Browser, shop: GuardedShop, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    page = await context.new_page()
    failures: list[str] = []
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on(
        "console", lambda message: failures.append(message.text) if "Content Security Policy" in message.text else None
    )
    queue = shop.queue
    later = {"release_rate": 1, "starts_at": "2099-01-01T00:00:00Z", "title": "W" * 60, "description": "x" * 200}
    await queue.change(**later)
    await queue.join("ann")

    async def check(state: str, path: str = "") -> None:
        await page.goto(shop.room + path)
        await expect(page.locator(f"main[data-state={state}]")).to_be_visible()
        await expect(page.locator("h1, h2")).to_have_count(2)
        assert await too_wide(page) == []
        assert (await violations(page)) == []

    await check("before")
    await queue.change(active=False)
    await check("paused")
    newcomer = await context.new_page()
    await context.clear_cookies()
    await page.goto(shop.room)
    await check("closed")
    await queue.change(active=True, max_queue_size=1)
    await check("full")
    await newcomer.close()
    await queue.change(starts_at=None, ends_at="2000-01-01T00:00:00Z")
    await check("ended")
    await queue.change(ends_at=None, max_queue_size=None, release_rate=1)
    await check("waiting")
    await queue.change(release_rate=1_000)
    await page.goto(f"{shop.room}/embed")
    await expect(page.locator("main[data-state=released]")).to_be_visible(timeout=20_000)
    await check("released", "/embed")
    await queue.ada.delete(queue.path)
    await check("gone")
    assert failures == []
    assert {url.split("/")[2] for url in requests} <= {shop.room.split("/")[2], shop.url.split("/")[2]}
