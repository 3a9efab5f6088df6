"""How much work it is to publish an event with a photo: counted in Chromium in clicks, fields and seconds.

The seconds are those of a person, by the keystroke-level model (Card, Moran and Newell, "The Keystroke-Level Model for
User Performance Time with Interactive Systems", 1980), so that they do not depend on the machine. With the variable
RECORDINGS, a trace with pictures of each step is left in that folder, for `playwright show-trace`.
"""

import os
import time
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from holdfast.events.settings import Settings
from tests.browser.registering import Stage, Watch, staged
from tests.browser.test_console_events import EMAIL, PASSWORD, signed_in
from tests.events.photos.pictures import picture

KEY_SECONDS = 0.28
POINT_AND_CLICK_SECONDS = 1.1 + 0.1
HAND_TO_KEYBOARD_SECONDS = 0.4
THINK_SECONDS = 1.35
"""The operators K of an average typist, P with a click, H and M of the model."""

MAX_SECONDS = 60
MAX_FIELDS = 8


class Person:
    """Counts what a person does."""

    def __init__(self) -> None:
        self.clicks = self.fields = 0
        self.seconds = 0.0

    async def click(self, control: Locator) -> None:
        await control.click()
        self.clicks += 1
        self.seconds += THINK_SECONDS + POINT_AND_CLICK_SECONDS

    async def enter(self, field: Locator, text: str, keys: int | None = None) -> None:
        """Click a field and type. `keys`: the number of keys, if it is not that of the characters."""
        await self.click(field)
        await field.fill(text)
        self.fields += 1
        self.seconds += HAND_TO_KEYBOARD_SECONDS + KEY_SECONDS * (len(text) if keys is None else keys)

    async def choose_file(self, field: Locator, name: str, content: bytes) -> None:
        """Open the window of files, click a file and the button."""
        await field.set_input_files({"name": name, "mimeType": "image/jpeg", "buffer": content})
        self.clicks += 3
        self.fields += 1
        self.seconds += 3 * (THINK_SECONDS + POINT_AND_CLICK_SECONDS)


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[Stage]:
    async with staged(settings) as stage:
        stage.ada = await stage.service.organizer(email=EMAIL, password=PASSWORD)
        yield stage


async def test_an_event_with_a_photo_is_published_from_one_screen_in_a_minute(chromium: Browser, stage: Stage) -> None:
    screen = {"width": 1200, "height": 800}
    context = await chromium.new_context(
        locale="en-US", timezone_id="Europe/Berlin", viewport={"width": screen["width"], "height": screen["height"]}
    )
    folder = os.environ.get("RECORDINGS")
    if folder:
        await context.tracing.start(screenshots=True, snapshots=True)
    watch = Watch(context)
    page = await signed_in(context, stage)
    preview = page.get_by_role("region", name="How the page will look")
    person, began = Person(), time.monotonic()

    await person.click(page.get_by_role("link", name="New event").first)
    publish = page.get_by_role("button", name="Publish")
    box = await publish.bounding_box()
    await person.enter(page.get_by_label("Title"), "Pottery evening")
    await person.enter(page.get_by_label("Date and time"), "2036-07-12T19:30", keys=len("071220360730p"))
    await person.enter(page.get_by_label("Name of the place"), "Studio 4")
    await person.enter(page.get_by_role("textbox", name="Places", exact=True), "12")
    await person.choose_file(page.get_by_label("Photos from this device"), "clay.jpg", picture())
    await person.enter(page.get_by_label("Description"), "We make cups. Bring an apron.")
    # The preview follows, in the time zone of the browser.
    await expect(preview.get_by_text("Pottery evening")).to_be_visible()
    await expect(preview).to_contain_text("Saturday, July 12, 2036")
    await expect(preview).to_contain_text("CEST")
    await expect(preview).to_contain_text("12 places left of 12")
    photo = preview.get_by_role("img", name="Photo of the event")
    await expect(photo).to_have_css("object-fit", "cover")
    assert await photo.evaluate("(image) => image.naturalWidth > 0")
    await person.click(publish)
    await expect(page.get_by_role("heading", name="Pottery evening")).to_be_visible()
    seconds = time.monotonic() - began

    if folder:
        await context.tracing.stop(path=f"{folder}/publish-an-event.zip")
    print(
        f"An event with a photo is published in {person.clicks} clicks, {person.fields} fields and "
        f"{person.seconds:.0f} s of a person; Chromium took {seconds:.1f} s."
    )
    assert box
    assert box["y"] + box["height"] <= screen["height"]
    assert person.fields <= MAX_FIELDS
    assert person.seconds <= MAX_SECONDS
    [event] = (await stage.ada.get("/api/events")).json()["data"]
    assert (event["published"], event["datetime"], event["timezone"]) == (True, "2036-07-12T17:30:00Z", "Europe/Berlin")
    assert len(event["image_urls"]) == 1
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}
