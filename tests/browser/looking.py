"""How every page is looked at: light and dark, on a small and on a large screen, in both languages."""

import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from zlib import crc32

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # pyright: ignore[reportMissingTypeStubs]
from playwright.async_api import Browser, BrowserContext, Locator, Page

from tests.helpers.form_browser import session_cookie_name

Test = TypeVar("Test", bound=Callable[..., Awaitable[None]])

SMALL, LARGE = 320, 1280
"""Widths of screens, in pixels."""

LOOKS = [("light", SMALL, "de"), ("dark", LARGE, "en")]
"""Each scheme, each width and each language once: what axe finds depends on the elements and their colours, and those
depend on the scheme and the language."""

SOAK = "HOLDFAST_SOAK" in os.environ


def parametrize_looks(test: Test) -> Test:
    """For a test that looks at pages with `violations` and `too_wide`: in both ways in `make soak`, else in one."""
    ways = LOOKS if SOAK else [LOOKS[crc32(test.__name__.encode()) % len(LOOKS)]]
    return pytest.mark.parametrize(("scheme", "width", "language"), ways)(test)


def with_and_without_scripts(test: Test) -> Test:
    """For a test that does the same with JavaScript and without it: in both ways in `make soak`, else with it.

    Tests named `test_without_scripts.py` do all that people do without JavaScript and without a browser.
    """
    with_scripts, without = pytest.param(True, id="with JavaScript"), pytest.param(False, id="without JavaScript")
    return pytest.mark.parametrize("scripts", [with_scripts, without] if SOAK else [with_scripts])(test)


LOCALES = {"de": "de-DE", "en": "en-US"}

FAULTS = """
    axe.run({ resultTypes: ["violations"] })
       .then((report) => report.violations.map((violation) => [violation.id, violation.nodes[0].html]))
"""


async def open_context(chromium: Browser, scheme: Any, width: int, language: str) -> BrowserContext:
    """A browser of a person who reads this language and likes this scheme. Nothing moves in it."""
    return await chromium.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        locale=LOCALES[language],
        # What moves on a page costs more than all that is looked at.
        reduced_motion="reduce",
    )


def session_cookie(address: str, secret: str) -> Any:
    """The cookie of a session of the service at an address without TLS."""
    return {"name": session_cookie_name(address), "value": secret, "url": address}


async def submit(button: Locator) -> None:
    """Click a button that sends a form, and wait for the page that answers: a click on a link would stop the form."""
    async with button.page.expect_event("framenavigated"):
        await button.click()


async def open_boxes(page: Page) -> None:
    """Open everything that opens by a click, also what opens only one at a time."""
    await page.evaluate(
        """
        for (const box of document.querySelectorAll("details")) {
          box.removeAttribute("name");
          box.open = true;
        }
        """
    )


async def violations(page: Page) -> list[tuple[str, str]]:
    """The rules of accessibility that a page breaks, each with the first place where it does."""
    await page.evaluate(AXE_SCRIPT)
    return [(rule, place) for rule, place in await page.evaluate(FAULTS)]


async def too_wide(page: Page) -> list[int]:
    """The widths of screens on which a page must be scrolled sideways, of a small and of a large one."""
    widths: list[int] = []
    viewport = page.viewport_size
    assert viewport
    for width in sorted((SMALL, LARGE), key=lambda content_width: content_width == viewport["width"]):
        await page.set_viewport_size({**viewport, "width": width})
        if await page.evaluate("document.documentElement.scrollWidth") > width:
            widths.append(width)
    return widths
