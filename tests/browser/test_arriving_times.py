"""A page that arrives in pieces has its times in the zone of the browser before they are painted."""

import asyncio
from importlib.resources import files

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.outside_servers import ok_answer, outside_server

SCRIPT = (files("holdfast.kit.pages") / "templates" / "times.js").read_bytes()
HEAD = "<!doctype html><html lang=en><head><title>Times</title><script src=times.js></script></head>"
PIECES = (
    f'{HEAD}<body><p><time datetime="2031-07-01T22:00:00Z" data-local="exact">1 July 2031, 22:00 UTC</time></p>',
    '<p><time datetime="2031-07-01T23:00:00Z" data-local="exact">1 July 2031, 2',
    "3:00 UTC</time></p>",
    '<p><time datetime="2031-07-01T23:30:00Z" data-local="first">July 1, 2031, 11:30 PM UTC</time></p>',
    "<p>The end",
)


async def test_times_in_each_piece_of_a_page_are_in_the_zone_of_the_browser(chromium: Browser) -> None:
    seen = [asyncio.Event() for _ in PIECES]

    async def answer(writer: asyncio.StreamWriter, request: str) -> None:
        if request.startswith("GET /times.js"):
            await ok_answer(SCRIPT, content_type="text/javascript")(writer, request)
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
        for piece, is_seen in zip(PIECES, seen, strict=True):
            writer.write(piece.encode())
            await writer.drain()
            await is_seen.wait()

    context = await chromium.new_context(timezone_id="Europe/Berlin", locale="en-US")
    page = await context.new_page()
    async with outside_server(answer) as server:
        loading = asyncio.create_task(page.goto(server.url))
        times = page.locator("time")
        await expect(times.nth(0)).to_have_text("July 2, 2031 at 12:00 AM Germany Time")
        seen[0].set()
        await expect(times.nth(1)).to_have_text("July 2, 2031 at 1:00 AM Germany Time")
        seen[1].set()
        seen[2].set()
        await expect(times.nth(1)).to_have_text("July 2, 2031 at 1:00 AM Germany Time")
        await expect(times.nth(2)).to_have_text("July 2, 2031, 1:30 AM")
        await expect(times.nth(2)).to_have_attribute("title", "July 2, 2031 at 1:30 AM Germany Time")
        seen[3].set()
        seen[4].set()
        await loading
    await context.close()


@pytest.mark.parametrize(
    ("locale", "zone", "name"),
    [
        ("en-US", "America/New_York", "EDT"),
        ("en-US", "Asia/Kolkata", "India Time"),
        ("de-DE", "Europe/Berlin", "MESZ"),
        ("de-DE", "America/New_York", "New York (Ortszeit)"),
        ("en-US", "UTC", "UTC"),
    ],
)
async def test_an_exact_time_has_a_zone_that_people_know(chromium: Browser, locale: str, zone: str, name: str) -> None:
    context = await chromium.new_context(timezone_id=zone, locale=locale)
    page = await context.new_page()
    head = HEAD.replace("lang=en", f"lang={locale[:2]}").replace(" src=times.js>", f">{SCRIPT.decode()}")

    await page.set_content(f"{head}<body>{PIECES[0].partition('<body>')[2]}")

    await expect(page.locator("time")).to_contain_text(name)
    await context.close()
