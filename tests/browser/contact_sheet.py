"""Draws every page into one contact sheet, to be looked at: `make contact-sheet`.

Starts `holdfast up` in a directory of its own, follows the links of three visitors, and photographs each page in four
looks: on a phone and on a desk, light and dark, in English and German. Below each page stands what it costs a phone.
"""

import argparse
import asyncio
import html
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PIL import Image, ImageDraw
from playwright.async_api import Browser, Page

from tests.browser.conftest import launch_chromium
from tests.browser.page_costs import measure
from tests.browser.visitors import DESK, PHONE, Visitor, pages_of, signed_in, visitors
from tests.command_line import run_up
from tests.helpers.data_directories import scratch_directory

LOOKS = [("light", DESK, "en"), ("dark", DESK, "de"), ("light", PHONE, "de"), ("dark", PHONE, "en")]

HEIGHT = 1_600
"""How much of a long page is shown, in pixels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("contact-sheet"), help="where it is written")
    parser.add_argument("--only", default="", help="draw only pages whose address has this text")
    arguments = parser.parse_args()
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    data_dir = scratch_directory()
    with run_up(data_dir, "--inventory-port=0", "--events-port=0") as output:
        figures = asyncio.run(draw(output, data_dir, directory, arguments.only))
    sheet = directory / "index.html"
    sheet.write_text("<!doctype html><meta charset=utf-8><title>Contact sheet</title>\n" + "\n".join(figures))
    print(f"{len(figures)} pages: open {sheet}")


async def draw(output: str, data_dir: Path, directory: Path, only: str) -> list[str]:
    """Draw the pages of the servers that `holdfast up` has started. Returns the figures of the sheet."""
    figures: list[str] = []
    async with launch_chromium() as chromium:
        for visitor in await visitors(output, data_dir):
            addresses = [url for url in await pages_of(chromium, visitor) if only in url]
            print(f"{visitor.name}: {len(addresses)} pages", flush=True)
            measured = await measure(chromium, visitor, addresses)
            strips = await photograph(chromium, visitor, addresses)
            for number, (address, strip) in enumerate(zip(addresses, strips, strict=True)):
                name = f"{visitor.name}-{number:03}.jpg"
                await asyncio.to_thread(strip.save, directory / name, quality=80)
                line = f"{visitor.name}: {urlsplit(address).path}, {measured[number]}"
                print(f"  {line}")
                caption = html.escape(line)
                figures.append(f'<figure><figcaption>{caption}</figcaption><img loading="lazy" src="{name}"></figure>')
    return figures


async def photograph(chromium: Browser, visitor: Visitor, addresses: list[str]) -> list[Image.Image]:
    """The pictures of each page in all looks, beside each other."""
    rows: list[list[Image.Image]] = [[] for _ in addresses]
    for scheme, width, language in LOOKS:
        context = await signed_in(chromium, visitor, scheme, width, language)
        page = await context.new_page()
        for row, address in zip(rows, addresses, strict=True):
            row.append(await picture(page, address, width))
        await context.close()
    return [strip(address, row) for address, row in zip(addresses, rows, strict=True)]


async def picture(page: Page, address: str, width: int) -> Image.Image:
    await page.goto(address, wait_until="load")
    height: int = await page.evaluate("document.documentElement.scrollHeight")
    clip: Any = {"x": 0, "y": 0, "width": width, "height": min(height, HEIGHT)}
    content = await page.screenshot(type="jpeg", quality=85, clip=clip, full_page=True)
    image = Image.open(io.BytesIO(content))
    image.thumbnail((width // 2, HEIGHT))
    return image


def strip(address: str, pictures: list[Image.Image]) -> Image.Image:
    """The pictures of one page in a row, under its address."""
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
