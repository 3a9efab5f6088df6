"""Fixtures of the tests in a real browser, which share one browser and its event loop. Each has contexts of its own."""

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

HERE = Path(__file__).parent

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs of Chromium, the best first: the one without windows takes two thirds of the processor time."""

DISABLED = (
    # Each context has a window, and each window would have a page for what is typed into its address bar: a process of
    # its own, which costs more than our pages do.
    "WebUIOmniboxPopup WebUIOmniboxAimPopup WebUIOmniboxFullPopup "
    # What Playwright disables by itself: the last list counts.
    "AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose HttpsUpgrades HttpsFirstBalancedModeAutoEnable "
    "LensOverlay MediaRouter PaintHolding ThirdPartyStoragePartitioning AvoidCorsURLLoaderRestartOnRedirect "
    "OptimizationHints NetworkTimeServiceQuerying AimEnabled PreconnectToSearch"
).split()
"""Features of Chromium that no test needs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@asynccontextmanager
async def launch_chromium(*arguments: str) -> AsyncGenerator[Browser]:
    """Chromium, as the system has it, with more arguments than it needs."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not program:
        reason = "chromium is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    # Its sandbox needs rights that containers lack; what it looks at here is our own.
    async with async_playwright() as playwright:
        disabled = f"--disable-features={','.join(DISABLED)}"
        # Without a graphics card the interface of one would be computed, which costs more than to draw without it. What
        # is left of that needs no process of its own.
        options = ["--no-sandbox", "--disable-gpu", "--in-process-gpu", disabled, *arguments]
        browser = await playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def started_chromium() -> AsyncIterator[Browser]:
    async with launch_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def chromium(started_chromium: Browser) -> AsyncIterator[Browser]:
    """Chromium without any context: what a test leaves open is closed, with its cookies, caches and pages."""
    yield started_chromium
    for context in started_chromium.contexts:
        await context.close()
