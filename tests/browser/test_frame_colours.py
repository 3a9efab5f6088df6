"""The form in another site has the colours of that site, not those of the visitor's system."""

import io
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image
from playwright.async_api import Browser, Page

from holdfast.events.settings import Settings
from tests.browser.conftest import launch_chromium
from tests.browser.registering import FormStage, serve_stage

SITE = (0, 128, 128)
"""The colour of the site around the form."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dark_chromium() -> AsyncIterator[Browser]:
    """Chromium on a dark system. The emulation of one would make every frame dark, whatever it follows."""
    async with launch_chromium("--blink-settings=preferredColorScheme=0") as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def colours(page: Page, stage: FormStage, scheme: str) -> tuple[tuple[int, ...], bool]:
    """The colour at the edge of the frame, where the page around it is to be seen, and whether the form is dark."""
    await page.goto(stage.pasted)
    await page.add_style_tag(content=f"body {{ background: rgb{SITE}; }}")
    await page.evaluate("scheme => { if (scheme) document.querySelector('iframe').style.colorScheme = scheme }", scheme)
    frame = page.frame_locator("iframe")
    await frame.get_by_label("E-mail address").wait_for()
    with Image.open(io.BytesIO(await page.locator("iframe").screenshot())) as picture:
        edge = picture.convert("RGB").getpixel((1, 1))
    is_dark = await frame.locator("body").evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    assert isinstance(edge, tuple)
    return edge, is_dark


async def test_the_embed_code_without_changes_fits_a_light_site(
    chromium: Browser, dark_chromium: Browser, stage: FormStage
) -> None:
    for browser in (chromium, dark_chromium):
        page = await (await browser.new_context(color_scheme="null")).new_page()

        assert await colours(page, stage, "") == (SITE, False)


@pytest.mark.parametrize(("scheme", "is_dark"), [("dark", True), ("light dark", True), ("light", False)])
async def test_an_embedded_form_has_the_colours_of_the_site_around_it(
    dark_chromium: Browser, stage: FormStage, scheme: str, is_dark: bool
) -> None:
    page = await (await dark_chromium.new_context(color_scheme="null")).new_page()

    edge, form_is_dark = await colours(page, stage, scheme)

    assert (edge, form_is_dark) == (SITE, is_dark)
