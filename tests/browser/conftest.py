"""Fixtures of the tests in a real browser."""

import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    """Chromium, as the system has it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        reason = "chromium is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    # Its sandbox needs rights that containers lack; what it looks at here is our own.
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()
