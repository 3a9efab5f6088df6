"""How much work it is to publish an event with a photo, counted in Chromium."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.events.settings import Settings
from tests.browser.person import at_task
from tests.browser.registering import Stage, Watch, staged
from tests.browser.test_console_events import EMAIL, PASSWORD, signed_in
from tests.events.photos.pictures import picture

MAX_SECONDS = 60
MAX_FIELDS = 8


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
    watch = Watch(context)
    page = await signed_in(context, stage)
    preview = page.get_by_role("region", name="How the page will look")

    async with at_task(context, "publish an event with a photo") as person:
        await person.click(page.get_by_role("link", name="New event").first)
        publish = page.get_by_role("button", name="Publish")
        box = await publish.bounding_box()
        await person.enter(page.get_by_label("Title"), "Pottery evening")
        await person.enter(page.get_by_label("Date and time"), "2036-07-12T19:30", keys=len("071220360730p"))
        await person.enter(page.get_by_label("Name of the place"), "Studio 4")
        await person.enter(page.get_by_role("textbox", name="Seats", exact=True), "12")
        await person.choose_file(page.get_by_label("Photos from this device"), "clay.jpg", picture())
        await person.enter(page.get_by_label("Description"), "We make cups. Bring an apron.")
        # The preview follows, in the time zone of the browser.
        await expect(page.get_by_text("Time zone: Europe/Berlin, as in this browser.")).to_be_visible()
        await expect(preview.get_by_text("Pottery evening")).to_be_visible()
        await expect(preview).to_contain_text("Saturday, July 12, 2036")
        await expect(preview).to_contain_text("CEST")
        await expect(preview).to_contain_text("12 seats left of 12")
        photo = preview.get_by_role("img", name="Photo of the event")
        await expect(photo).to_have_css("object-fit", "cover")
        assert await photo.evaluate("(image) => image.naturalWidth > 0")
        await person.click(publish)
        await expect(page.get_by_role("heading", name="Pottery evening")).to_be_visible()

    assert box
    assert box["y"] + box["height"] <= screen["height"]
    assert person.fields <= MAX_FIELDS
    assert person.seconds <= MAX_SECONDS
    [event] = (await stage.ada.get("/api/events")).json()["data"]
    assert (event["published"], event["datetime"], event["timezone"]) == (True, "2036-07-12T17:30:00Z", "Europe/Berlin")
    assert len(event["image_urls"]) == 1
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2]}
