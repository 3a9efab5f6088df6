"""The form in another site: it shows what the card of the event page shows, and is as high as its content."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Frame, Page, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.registering import MOVING_PRICE, Watch, prove_organizers, serve_stage, with_payments

FREE: dict[str, Any] = {}
PAID = {"pricing_mode": "fixed", "price": 1250, "currency": "EUR"}
PRICES = {"free": "Free", "paid": "€12.50", "moving": "€10.00"}
PLACE = {"title": "Life drawing", "location_name": "Studio 3", "address": "Main Street 1, Berlin"}

FITTED = """
    () => new Promise((done) => {
      const look = () => innerHeight === Math.ceil(document.documentElement.getBoundingClientRect().height)
        ? done(innerHeight) : requestAnimationFrame(look);
      look();
    })
"""
SCROLLS = "document.documentElement.scrollHeight > innerHeight"


async def embedded_frame(page: Page) -> Frame:
    """What is in the frame of a page."""
    await expect(page.locator("iframe")).to_be_visible()
    frame = page.frames[1]
    await frame.wait_for_load_state()
    await expect(page.frame_locator("iframe").get_by_label("E-mail address")).to_be_visible()
    return frame


async def fitted_height(frame: Frame) -> int:
    """The height of a frame, as soon as it is that of its content."""
    return await asyncio.wait_for(frame.evaluate(FITTED), 15)


@pytest.mark.parametrize("kind", ["free", "paid", "moving"])
async def test_the_frame_shows_the_card_and_is_as_high_as_its_content(
    chromium: Browser, settings: Settings, kind: str
) -> None:
    fields = {"free": FREE, "paid": PAID, "moving": MOVING_PRICE}[kind]
    async with serve_stage(with_payments(settings), capacity=8, **PLACE, **fields) as stage:
        await prove_organizers(stage)
        for width in (390, 1280):
            context = await chromium.new_context(viewport={"width": width, "height": 800}, locale="en-GB")
            watch = Watch(context)
            page = await context.new_page()
            await page.goto(stage.pasted)
            frame = await embedded_frame(page)
            main = page.frame_locator("iframe").locator("main")

            await fitted_height(frame)

            assert not await frame.evaluate(SCROLLS)
            assert await too_wide(page) == []
            for text in ("Life drawing", "Studio 3", "8 seats left", "Ada"):
                await expect(main).to_contain_text(text)
            await expect(main.locator(".price")).to_have_text(PRICES[kind])
            await expect(main.locator(".cover")).to_be_visible()
            await expect(main.locator(".bar")).to_be_visible()
            await expect(main.locator("time").first).to_be_visible()
            assert watch.failures == []
            await context.close()


async def test_an_error_and_the_outcome_change_the_height(chromium: Browser, settings: Settings) -> None:
    async with serve_stage(settings) as stage:
        page = await (await chromium.new_context(viewport={"width": 390, "height": 800})).new_page()
        await page.goto(stage.pasted)
        frame = await embedded_frame(page)
        empty = await fitted_height(frame)

        await frame.get_by_role("button", name="Register").click()
        await expect(frame.locator("#email-error")).to_be_visible()
        refused_height = await fitted_height(frame)
        await frame.get_by_label("E-mail address").fill("ann@example.com")
        await frame.get_by_role("button", name="Register").click()
        await expect(page.frame_locator("iframe").get_by_role("status")).to_contain_text("We have received")

        assert refused_height > empty > await fitted_height(frame)


async def test_a_frame_without_our_script_scrolls(chromium: Browser, settings: Settings) -> None:
    async with serve_stage(settings, **PLACE) as stage:
        page = await (await chromium.new_context(viewport={"width": 390, "height": 800})).new_page()
        await page.goto(stage.alone)
        frame = await embedded_frame(page)

        assert await page.locator("iframe").evaluate("frame => frame.clientHeight") == 640
        assert await frame.evaluate(SCROLLS)
        button = frame.get_by_role("button", name="Register")
        await button.scroll_into_view_if_needed()
        await expect(button).to_be_in_viewport()


async def test_a_moving_price_moves_in_the_frame_and_on_its_button(chromium: Browser, settings: Settings) -> None:
    async with serve_stage(with_payments(settings), capacity=8, **MOVING_PRICE) as stage:
        await prove_organizers(stage)
        page = await (await chromium.new_context(locale="en-GB")).new_page()
        async with page.expect_response(lambda response: response.url.endswith("/embed/stream")):
            await page.goto(stage.pasted)
        main = page.frame_locator("iframe").locator("main")
        await expect(main.locator(".price")).to_have_text("€10.00")

        await stage.service.run_sql("update events set current_price = 1500")

        await expect(main.locator(".price")).to_have_text("€15.00")
        await expect(main.get_by_role("button")).to_have_text("Register and pay €15.00")


async def test_only_the_frame_itself_can_change_its_height(chromium: Browser, settings: Settings) -> None:
    async with serve_stage(settings) as stage:
        page = await (await chromium.new_context()).new_page()
        await page.goto(stage.pasted)
        frame = await embedded_frame(page)
        high = await fitted_height(frame)

        await page.evaluate("postMessage({ type: 'holdfast.height', height: 5 }, '*')")
        for height in ("'1px;position:fixed'", "-1", "1e9", "NaN", "null"):
            await frame.evaluate(f"parent.postMessage({{ type: 'holdfast.height', height: {height} }}, '*')")
        await page.evaluate("new Promise((done) => { onmessage = done; postMessage('last', '*'); })")

        assert await frame.evaluate("innerHeight") == high
        assert re.fullmatch(
            r"height: \d+px;|.*; height: \d+px;", await page.locator("iframe").get_attribute("style") or ""
        )


@parametrize_looks
async def test_the_card_in_the_frame_is_accessible_and_fits_small_screens(
    chromium: Browser, settings: Settings, scheme: str, width: int, language: str
) -> None:
    fields = {**MOVING_PRICE, "title": "W" * 60, "location_name": "x" * 100, "address": "Street 1"}
    async with serve_stage(with_payments(settings), capacity=2, **fields) as stage:
        await prove_organizers(stage)
        context = await open_context(chromium, scheme, width, language)
        watch = Watch(context)
        page = await context.new_page()
        await page.goto(stage.form)

        assert await violations(page) == []
        assert await too_wide(page) == []
        assert watch.failures == []
        assert len(await page.content()) < 60_000
