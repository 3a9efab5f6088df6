"""A visitor in Chromium enters the draw of an event, sees the drawn place, and computes the order again."""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.events.draws.event_scene import opening_event
from tests.helpers.serving import serve_events


@parametrize_looks
async def test_a_visitor_enters_the_draw_of_an_event_and_computes_its_order_again(
    chromium: Browser, settings: Settings, monkeypatch: pytest.MonkeyPatch, scheme: Any, width: int, language: str
) -> None:
    async with (
        serve_events(settings) as service,
        opening_event(service, monkeypatch, capacity=2, waitinglist_capacity=5) as draw,
    ):
        await draw.enter("ann", "bob", "cyd")
        page = await (await open_context(chromium, scheme, width, language)).new_page()
        await page.goto(draw.event["public_url"])
        await expect(page.locator("#opening")).to_be_visible()
        assert await too_wide(page) == []
        assert await violations(page) == []
        await page.locator("#email").fill("dan@example.com")
        await page.locator("main form button[type=submit]").click()
        await page.wait_for_url("**/outcome*")
        await service.settle()
        await page.reload()
        await expect(page.locator("main")).to_have_attribute("data-state", "in_draw")
        assert await too_wide(page) == []
        assert await violations(page) == []

        await draw.freeze_in_log()
        await draw.draw()
        await draw.give_places()
        await service.wait_for_notices()
        order = await draw.order()
        # The stream of the event tells the page of the outcome.
        outcome = "registered" if order.index(4) < 2 else "waitlisted"
        await expect(page.locator("main")).to_have_attribute("data-state", outcome, timeout=20_000)
        await page.goto(draw.event["public_url"])
        await page.locator("#drawn summary").click()
        await expect(page.locator("#drawn code")).to_be_visible()
        assert await too_wide(page) == []
        assert await violations(page) == []
        code, _, call = (await page.locator("#drawn code").inner_text()).rpartition("await drawnOrder")
        call = call.rstrip().rstrip(";")
        computed = await page.evaluate(f"async () => {{ {code}\nreturn JSON.stringify(await drawnOrder{call}); }}")
        assert json.loads(computed) == order
