"""What a page costs on a phone with a slow network and a slow processor: bytes, what moves, the first paint.

`python -m tests.browser.page_costs ADDRESS ...` prints it for public pages: the median of five loads.
"""

import argparse
import asyncio
from statistics import median
from typing import Any, NamedTuple

from playwright.async_api import Browser, BrowserContext

from tests.browser.conftest import launch_chromium
from tests.browser.visitors import PHONE, SheetVisitor, signed_in


class Measured(NamedTuple):
    """What a page costs on a phone with a slow network and a slow processor.

    kilobytes   the page with its scripts and styles, as they are sent, without images
    shift       how much moved while the page was loaded: the layout shift of Chromium
    paint_ms    milliseconds until something is seen
    """

    kilobytes: float
    shift: float
    paint_ms: float

    def __str__(self) -> str:
        return f"{self.kilobytes:.0f} kB, shift {self.shift:.3f}, first paint {self.paint_ms:.0f} ms"


LOADS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS")
    asyncio.run(print_costs(parser.parse_args().addresses))


async def print_costs(addresses: list[str]) -> None:
    visitor = SheetVisitor("anonymous", [])
    async with launch_chromium() as chromium:
        # The first page of a browser waits for the browser.
        await measure(chromium, visitor, addresses[:1])
        for address in addresses:
            costs = await measure(chromium, visitor, [address] * LOADS)
            print(address, Measured(*(median(figures) for figures in zip(*costs, strict=True))), flush=True)


async def measure(chromium: Browser, visitor: SheetVisitor, addresses: list[str]) -> list[Measured]:
    """What each page costs, loaded for the first time."""
    measured: list[Measured] = []
    for address in addresses:
        context = await signed_in(chromium, visitor, "light", PHONE, "en")
        measured.append(await measure_page(context, address))
        await context.close()
    return measured


async def measure_page(context: BrowserContext, address: str) -> Measured:
    """What a page costs in a browser."""
    await context.add_init_script(OBSERVER)
    page = await context.new_page()
    session: Any = await context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": SLOW_PROCESSOR})
    await page.goto(address, wait_until="load")
    await page.evaluate(PAINTED)
    measured = Measured(*await page.evaluate(MEASURED))
    await page.close()
    return measured


SLOW_NETWORK = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 94_000}
"""A slow phone: the latency in milliseconds, the throughput in bytes a second."""

SLOW_PROCESSOR = 4
"""How many times slower than this machine a phone is."""

OBSERVER = """
    window.shift = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value })
        .observe({ type: "layout-shift", buffered: true });
"""
PAINTED = """
    () => new Promise((resolve) => {
        const isPainted = () => performance.getEntriesByName("first-contentful-paint").length;
        const look = () => isPainted() ? resolve() : setTimeout(look, 10);
        look();
    })
"""
# A page fetches itself again, soon after it follows a stream: an answer that it is unchanged has no body.
MEASURED = """
    () => {
        const sent = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
            .filter((entry) => !["img", "image", "css"].includes(entry.initiatorType));
        const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
        return [sent.reduce((sum, entry) => sum + entry.transferSize, 0) / 1000, window.shift, paint];
    }
"""


if __name__ == "__main__":
    main()
