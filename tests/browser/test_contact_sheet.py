"""The contact sheet shows pages as a visitor sees them."""

from typing import Any
from urllib.parse import quote

from PIL import Image
from playwright.async_api import Browser

from tests.browser.contact_sheet import picture
from tests.browser.visitors import DESKTOP, Shot

PAGE = """<!doctype html><style>body { margin: 0; background: #fff }
main { height: 2000px } .bar { position: sticky; bottom: 0; height: 40px; background: #00f }</style>
<main></main><div class=bar></div>"""

WIDTH, HEIGHT = 400, 800


async def test_a_bar_at_the_bottom_of_the_window_is_at_the_bottom_of_each_screen(chromium: Browser) -> None:
    page = await (await chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT})).new_page()

    drawn = await picture(page, Shot("long page", (f"data:text/html,{quote(PAGE)}",)), 0, [])

    blue = [y for y in range(drawn.height) if is_blue(drawn, y)]
    assert len(blue) in range(38, 42)
    assert blue[-1] == drawn.height - 1
    assert blue[len(blue) // 2 - 1] == HEIGHT // 2 - 1


async def test_a_page_that_cannot_be_reached_as_wanted_is_told(chromium: Browser) -> None:
    page = await (await chromium.new_context(viewport={"width": DESKTOP, "height": HEIGHT})).new_page()
    stopped: list[str] = []

    async def press(_: object) -> None:
        await page.locator("button").click(timeout=100)

    drawn = await picture(page, Shot("no button", ("data:text/html,<p>Nothing",), press), 0, stopped)

    assert drawn.size == (DESKTOP // 2, HEIGHT // 2)
    assert [line.partition(":")[0] for line in stopped] == ["no button"]


def is_blue(image: Image.Image, y: int) -> bool:
    pixel: Any = image.convert("RGB").getpixel((image.width // 2, y))
    red, green, blue = pixel
    return bool(blue > 200 and red < 80 and green < 80)
