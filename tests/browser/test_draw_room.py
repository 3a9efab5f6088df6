"""A visitor in Chromium is in a draw, gets the drawn place without loading the page, and computes the order again."""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from holdfast_verify.formats.drawn_order import draw_order
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.events.queues.draw_scene import drawing_queue
from tests.helpers.events_service import eventually
from tests.helpers.serving import serve_events

REFRESH = "document.dispatchEvent(new Event('visibilitychange'))"


@parametrize_looks
async def test_the_page_of_a_draw_shows_the_drawn_place_and_computes_the_order_again(
    chromium: Browser, settings: Settings, monkeypatch: pytest.MonkeyPatch, scheme: Any, width: int, language: str
) -> None:
    async with (
        serve_events(settings) as service,
        drawing_queue(service, monkeypatch) as draw,
    ):
        await draw.queue.join("ann", "bob", "cyd")
        page = await (await open_context(chromium, scheme, width, language)).new_page()
        await page.goto(f"{service.base_url}/queues/{draw.queue.id}")
        await expect(page.locator("#entries")).to_have_text("4")
        assert await too_wide(page) == []
        assert await violations(page) == []
        await draw.queue.join("dan")
        async with page.expect_response("**/progress*"):
            await page.evaluate(REFRESH)
        await expect(page.locator("#entries")).to_have_text("5")

        await draw.seal()
        await draw.freeze()
        await draw.seal()
        await draw.draw()
        ((seed,),) = await service.run_sql("select seed from queue_draws")
        order = draw_order(seed, 5)

        async def has_place() -> bool:
            await page.evaluate(REFRESH)  # what all pages share may be a second old
            return await page.locator("#position").count() > 0

        await eventually(has_place, 20)
        await expect(page.locator("#position")).to_have_text(str(order.index(4) + 1))
        await page.locator("#drawn summary").click()
        await page.evaluate(REFRESH)
        await expect(page.locator("#drawn code")).to_be_visible()
        assert await too_wide(page) == []
        assert await violations(page) == []
        code, _, call = (await page.locator("#drawn code").inner_text()).rpartition("await drawnOrder")
        call = call.rstrip().rstrip(";")
        computed = await page.evaluate(f"async () => {{ {code}\nreturn JSON.stringify(await drawnOrder{call}); }}")
        assert json.loads(computed) == order
