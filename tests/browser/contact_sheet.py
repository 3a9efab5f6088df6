"""Draws every page into one contact sheet, to be looked at: `make contact-sheet`.

Starts `holdfast up` in a directory of its own, follows the links of three visitors, lets others do what brings them to
pages without links, and photographs each page in four looks: on a phone and a desktop, light and dark, in English and
German. A long page is scrolled by a screen, so bars stand where people see them. Above each stands its cost on a phone.
"""

import argparse
import asyncio
import html
import io
import sys
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image, ImageDraw
from playwright.async_api import Browser, Error, Page

from tests.browser.conftest import launch_chromium
from tests.browser.demonstration import Demonstration, run_demonstration
from tests.browser.host_shots import hosts
from tests.browser.page_costs import measure
from tests.browser.shop_shots import shops
from tests.browser.visitors import DESKTOP, PHONE, SheetVisitor, Shot, pages_of, signed_in, visitors

LOOKS = [("light", DESKTOP, "en"), ("dark", DESKTOP, "de"), ("light", PHONE, "de"), ("dark", PHONE, "en")]

SCREENS = 2
"""How many screens of a long page are shown."""

OVERLAP = 90
"""How many pixels of a screen are shown again at the top of the next one, since a bar may have covered them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("contact-sheet"), help="where it is written")
    parser.add_argument("--only", default="", help="draw only pages whose name has this text")
    parser.add_argument("--visitor", default="", help="draw only the pages of this visitor")
    arguments = parser.parse_args()
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    # Those who make what is drawn ask more often than people do.
    limits = ("MCP_RATE_LIMIT", "FORM_RATE_LIMIT", "API_QUEUE_JOIN_RATE_LIMIT")
    often = dict.fromkeys(limits, "1000")
    with run_demonstration(**often) as demonstration:
        figures, stopped = asyncio.run(draw(demonstration, directory, arguments.visitor, arguments.only))
    sheet = directory / "index.html"
    sheet.write_text("<!doctype html><meta charset=utf-8><title>Contact sheet</title>\n" + "\n".join(figures))
    print(f"{len(figures)} pages: open {sheet}")
    sys.exit("\n".join(f"Drawn as it stopped: {line}" for line in stopped) or None)


async def draw(demonstration: Demonstration, directory: Path, name: str, only: str) -> tuple[list[str], list[str]]:
    """Draw the pages of the servers that `holdfast up` has started.

    Returns the figures of the sheet, and the pages on which something could not be done.
    """
    figures, stopped = list[str](), list[str]()
    drawn: set[str] = set()
    async with launch_chromium() as chromium:
        for find in (visitors, hosts, shops):
            for visitor in await find(chromium, demonstration, directory):
                if name in visitor.name:
                    figures += await draw_visitor(chromium, visitor, directory, only, drawn, stopped)
    return figures, stopped


async def draw_visitor(
    chromium: Browser, visitor: SheetVisitor, directory: Path, only: str, drawn: set[str], stopped: list[str]
) -> list[str]:
    """Draw the pages of a visitor. Returns their figures."""
    linked = [Shot(urlsplit(url).path, (url,)) for url in await pages_of(chromium, visitor, drawn)]
    shots = [shot for shot in (*linked, *visitor.shots) if only in shot.name]
    print(f"{visitor.name}: {len(shots)} pages", flush=True)
    costs = await measure(chromium, visitor, [shot.address(0) for shot in shots])
    figures: list[str] = []
    for number, (shot, strip) in enumerate(
        zip(shots, await photograph(chromium, visitor, shots, stopped), strict=True)
    ):
        name = f"{visitor.name}-{number:03}.jpg"
        await asyncio.to_thread(strip.save, directory / name, quality=80)
        line = f"{visitor.name}: {shot.name}, {costs[number]}"
        print(f"  {name[:-4]} {line}")
        caption = html.escape(line)
        figures.append(f'<figure><figcaption>{caption}</figcaption><img loading="lazy" src="{name}"></figure>')
    return figures


async def photograph(
    chromium: Browser, visitor: SheetVisitor, shots: list[Shot], stopped: list[str]
) -> list[Image.Image]:
    """The pictures of each page in all looks, beside each other."""
    rows: list[list[Image.Image]] = [[] for _ in shots]
    for look, (scheme, width, language) in enumerate(LOOKS):
        context = await signed_in(chromium, visitor, scheme, width, language)
        page = await context.new_page()
        for row, shot in zip(rows, shots, strict=True):
            row.append(await picture(page, shot, look, stopped))
        await context.close()
    return [strip(f"{shot.name}  {shot.address(0)}", row) for shot, row in zip(shots, rows, strict=True)]


async def picture(page: Page, shot: Shot, look: int, stopped: list[str]) -> Image.Image:
    """The first screens of a page, as a visitor sees them. What could not be done there is added to `stopped`."""
    try:
        await page.goto(shot.address(look), wait_until="load")
        if shot.act:
            await shot.act(page)
    except (Error, AssertionError) as error:
        stopped.append(f"{shot.name}: {error}")
    viewport = page.viewport_size
    assert viewport
    height: int = await page.evaluate("document.documentElement.scrollHeight")
    screens = [await screen(page)]
    bottom = viewport["height"]
    while bottom < height and len(screens) < SCREENS:
        top = min(bottom - OVERLAP, height - viewport["height"])
        await page.evaluate("(top) => window.scrollTo({ top, behavior: 'instant' })", top)
        # Nothing of the first screen is shown again but what a bar may have covered.
        below = await screen(page)
        screens.append(below.crop((0, bottom - OVERLAP - top, below.width, below.height)))
        bottom = top + viewport["height"]
    return stack(screens)


async def screen(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(await page.screenshot(type="jpeg", quality=90)))


def stack(screens: list[Image.Image]) -> Image.Image:
    """Screens below each other, a line between them. A desktop is shown at half its size."""
    gap = 4
    height = sum(image.height for image in screens) + gap * (len(screens) - 1)
    image = Image.new("RGB", (screens[0].width, height), "#d33")
    top = 0
    for part in screens:
        image.paste(part, (0, top))
        top += part.height + gap
    if image.width > PHONE:
        image.thumbnail((image.width // 2, image.height // 2))
    return image


def strip(address: str, pictures: list[Image.Image]) -> Image.Image:
    """The pictures of one page in a row, under its name and address."""
    gap, caption = 12, 24
    width, height = sum(picture.width + gap for picture in pictures) + gap, max(picture.height for picture in pictures)
    size = (width, caption + height + gap)
    image = Image.new("RGB", size, "#777")
    ImageDraw.Draw(image).text((gap, 6), address, fill="#fff")
    left = gap
    for picture in pictures:
        image.paste(picture, (left, caption))
        left += picture.width + gap
    return image


if __name__ == "__main__":
    main()
