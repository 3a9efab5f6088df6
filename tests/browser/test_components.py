"""The gallery of all components in Chromium: it is accessible, and charts say their values."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.demo.stripe.processor import run_processor


@parametrize_looks
async def test_every_component_is_accessible_and_fits_small_screens(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    async with run_processor() as scene:
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        await page.goto(f"{scene.processor.address}/components")

        assert await violations(page) == []
        assert await too_wide(page) == []
        await context.close()


async def test_a_chart_says_its_values_to_the_pointer_and_to_the_keyboard(chromium: Browser) -> None:
    async with run_processor() as scene:
        context = await open_context(chromium, "light", 1280, "en")
        page = await context.new_page()
        await page.goto(f"{scene.processor.address}/components")
        figure = page.locator("[data-chart]").first
        drawing, value = figure.locator("svg[role=img]"), figure.locator("output")
        rows = [await row.locator("td, th").all_text_contents() for row in await figure.locator("tr[data-x]").all()]
        texts = [f"{when.strip()}: {' · '.join(filter(None, map(str.strip, rest)))}" for when, *rest in rows]

        await expect(value).to_be_hidden()
        await drawing.hover(position={"x": 600, "y": 40})
        await expect(value).to_be_visible()
        pointed = await value.inner_text()
        await drawing.focus()
        await page.keyboard.press("ArrowLeft")
        stepped = await value.inner_text()
        await page.keyboard.press("Escape")
        await expect(value).to_be_hidden()

        # The table has the newest value first, and the left arrow leads to the one before.
        assert pointed in texts
        assert stepped == texts[texts.index(pointed) + 1]
        await context.close()
