"""On a phone in Chromium, the buttons of a row are equally large, and none stands beside an empty place."""

import pytest
from playwright.async_api import Browser

from holdfast.kit.pages.layout import CONSOLE_STYLE, STYLE
from tests.browser.visitors import PHONE

BUTTON = '<a class="button" href="/">{}</a>'
MENU = '<details class="menu"><summary class="button">Mehr</summary></details>'
LONG, SHORT = BUTTON.format("Die Zahlen im Shop noch einmal setzen"), BUTTON.format("Abbrechen")
SIZES = (
    "row => [...row.children].map(child => child.getBoundingClientRect()).map(({ width, height }) => [width, height])"
)


async def sizes(chromium: Browser, row: str) -> tuple[float, list[tuple[int, int]]]:
    """The width of a row of buttons, and the width and height of each."""
    context = await chromium.new_context(viewport={"width": PHONE, "height": 800})
    page = await context.new_page()
    choices = f'<div class="choices">{row}</div>'
    await page.set_content(f'<style>{STYLE}{CONSOLE_STYLE}</style><body class="console"><main>{choices}</main></body>')
    line = page.locator(".choices")
    box = await line.bounding_box()
    assert box
    buttons: list[list[int]] = await line.evaluate(SIZES)
    await context.close()
    return box["width"], [(width, height) for width, height in buttons]


@pytest.mark.parametrize("row", [LONG + SHORT, SHORT + MENU, SHORT + LONG + SHORT + MENU])
async def test_buttons_of_a_row_have_one_width_and_one_height(chromium: Browser, row: str) -> None:
    width, of_buttons = await sizes(chromium, row)

    assert len(set(of_buttons)) == 1
    assert width / 2 - 10 < of_buttons[0][0] < width / 2


async def test_the_first_of_an_odd_number_of_buttons_is_as_wide_as_the_row(chromium: Browser) -> None:
    width, [first, *others] = await sizes(chromium, SHORT + LONG + MENU)

    assert first[0] == round(width)
    assert len(set(others)) == 1
    assert others[0][0] < width / 2
