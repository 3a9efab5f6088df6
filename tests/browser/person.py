"""A person who does a task in a browser, counted in clicks, fields and the seconds of a person.

The seconds are those of the keystroke-level model (Card, Moran and Newell, "The Keystroke-Level Model for User
Performance Time with Interactive Systems", 1980), so that they do not depend on the machine. With the variable
RECORDINGS, a trace with pictures of each step is left in that folder, for `playwright show-trace`.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import BrowserContext, Locator, Page

KEY_SECONDS = 0.28
POINT_AND_CLICK_SECONDS = 1.1 + 0.1
HAND_TO_KEYBOARD_SECONDS = 0.4
THINK_SECONDS = 1.35
"""The operators K of an average typist, P with a click, H and M of the model."""


class Person:
    """Counts what a person does. With a directory, a picture of each page is stored there before each click."""

    def __init__(self, pictures: Path | None = None) -> None:
        self.clicks = self.fields = 0
        self.seconds = 0.0
        self._pictures = pictures

    async def see(self, page: Page) -> None:
        """Take a picture of what the person sees now."""
        if self._pictures:
            await page.screenshot(path=self._pictures / f"{self.clicks + 1:02}.png")

    async def _find(self, control: Locator) -> None:
        """Bring a control into view, as the person does who looks for it."""
        if self._pictures:
            # A live part may be replaced at this moment, which fails the scrolling of Playwright.
            await control.evaluate("control => control.scrollIntoViewIfNeeded()")
            await self.see(control.page)

    async def click(self, control: Locator) -> None:
        await self._find(control)
        await control.click()
        self.clicks += 1
        self.seconds += THINK_SECONDS + POINT_AND_CLICK_SECONDS

    async def enter(self, field: Locator, text: str, keys: int | None = None) -> None:
        """Click a field and type. `keys`: the number of keys, if it is not that of the characters."""
        await self.click(field)
        await field.fill(text)
        self.fields += 1
        self.seconds += HAND_TO_KEYBOARD_SECONDS + KEY_SECONDS * (len(text) if keys is None else keys)

    async def press(self, field: Locator, key: str) -> None:
        await field.press(key)
        self.seconds += KEY_SECONDS

    async def choose(self, field: Locator, label: str) -> None:
        """Open a list, and click one of its options."""
        await self._find(field)
        await field.select_option(label=label)
        self.clicks += 2
        self.fields += 1
        self.seconds += 2 * (THINK_SECONDS + POINT_AND_CLICK_SECONDS)

    async def choose_file(self, field: Locator, name: str, content: bytes) -> None:
        """Open the window of files, click a file and the button."""
        await field.set_input_files({"name": name, "mimeType": "image/jpeg", "buffer": content})
        self.clicks += 3
        self.fields += 1
        self.seconds += 3 * (THINK_SECONDS + POINT_AND_CLICK_SECONDS)


@asynccontextmanager
async def at_task(context: BrowserContext, task: str) -> AsyncGenerator[Person]:
    """A person who does a task until the block ends. Prints the clicks, fields and seconds."""
    folder = os.environ.get("RECORDINGS")
    if folder:
        await context.tracing.start(screenshots=True, snapshots=True)
    person = Person()
    yield person
    if folder:
        await context.tracing.stop(path=f"{folder}/{task.replace(' ', '-')}.zip")
    print(f"{task}: {person.clicks} clicks, {person.fields} fields, {person.seconds:.0f} s of a person")
