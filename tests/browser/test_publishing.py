"""How much work it is to publish an event with a photo, free or paid, counted in Chromium."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from holdfast_demo.stripe.processor import StripeDouble
from tests.browser.console import EMAIL, PASSWORD, sign_in
from tests.browser.looking import session_cookie
from tests.browser.person import at_task
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.helpers.events_service import Client
from tests.helpers.pictures import picture
from tests.helpers.serving import bind_port, serve_app

MAX_SECONDS = 60
MAX_FIELDS = 8
MAX_PAID_CLICKS = 14
"""With a photo, and with the way to the payment processor and back."""


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        stage.ada = await stage.service.organizer(email=EMAIL, password=PASSWORD)
        yield stage


async def test_an_event_with_a_photo_is_published_from_one_screen_in_a_minute(
    chromium: Browser, stage: FormStage
) -> None:
    screen = {"width": 1200, "height": 800}
    context = await chromium.new_context(
        locale="en-US", timezone_id="Europe/Berlin", viewport={"width": screen["width"], "height": screen["height"]}
    )
    watch = Watch(context)
    page = await sign_in(context, stage)
    preview = page.get_by_role("region", name="How the page will look")

    async with at_task(context, "publish an event with a photo") as person:
        await person.click(page.get_by_role("link", name="New event").first)
        publish = page.get_by_role("button", name="Publish")
        box = await publish.bounding_box()
        await person.enter(page.get_by_label("Title"), "Pottery evening")
        await person.enter(page.get_by_label("Date and time"), "2036-07-12T19:30", keys=len("071220360730p"))
        await person.enter(page.get_by_label("Place", exact=True), "Studio 4")
        await person.enter(page.get_by_role("textbox", name="Seats", exact=True), "12")
        await person.choose_file(page.get_by_label("Add photos"), "clay.jpg", picture())
        await person.enter(page.get_by_label("Description"), "We make cups. Bring an apron.")
        # The preview follows, in the time zone of the browser.
        await expect(page.get_by_text("Time zone: Europe/Berlin, as in this browser.")).to_be_visible()
        await expect(preview.get_by_text("Pottery evening")).to_be_visible()
        await expect(preview).to_contain_text("Saturday, July 12, 2036")
        await expect(preview).to_contain_text("CEST")
        await expect(preview).to_contain_text("0 of 12 taken 12 seats left")
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


async def test_a_paid_event_is_published_from_an_empty_console_in_fourteen_clicks(
    chromium: Browser, settings: Settings
) -> None:
    with bind_port() as port:
        address = port.url
        processor = StripeDouble(address)
        paid = settings.model_copy(update={"stripe_key": processor.key, "stripe_api": address})
        async with serve_app(processor.app, port), serve_stage(paid) as stage:
            grace = await stage.service.organizer("Grace Events", email="grace@example.com")
            context = await owner(chromium, stage, grace)
            page = await context.new_page()
            await page.goto(f"{stage.base_url}/console")

            async with at_task(context, "publish a paid event") as person:
                await person.click(page.get_by_role("link", name="New event").first)
                await person.enter(page.get_by_label("Title"), "Pottery evening")
                await person.enter(page.get_by_label("Date and time"), "2036-07-12T19:30", keys=len("071220360730p"))
                await person.enter(page.get_by_label("Place", exact=True), "Studio 4")
                await person.enter(page.get_by_role("textbox", name="Seats", exact=True), "12")
                await person.enter(page.get_by_role("textbox", name="Price", exact=True), "12.50")
                await person.choose_file(page.get_by_label("Add photos"), "clay.jpg", picture())
                await person.enter(page.get_by_label("Description"), "We make cups. Bring an apron.")
                await person.click(page.get_by_role("button", name="Publish"))
                await expect(page.get_by_role("heading", name="Nobody can pay you yet")).to_be_visible()
                await person.click(page.get_by_role("button", name="Connect payouts"))
                await person.click(page.get_by_role("button", name="Finish the account"))
                await expect(page.get_by_text("Payouts are connected: people can pay you.")).to_be_visible()
                await person.click(page.get_by_role("button", name="Publish"))
                await expect(page.get_by_text("Open", exact=True)).to_be_visible()

            assert person.clicks <= MAX_PAID_CLICKS
            [event] = (await grace.get("/api/events")).json()["data"]
            assert (event["published"], event["payment"]["status"], event["price"]) == (True, "required", 1250)
            assert (event["pricing_mode"], len(event["image_urls"])) == ("fixed", 1)
        processor.check()
    processor.close()


async def owner(chromium: Browser, stage: FormStage, organizer: Client) -> BrowserContext:
    """The browser of an organizer who has signed in by a link."""
    context = await chromium.new_context(locale="en-US", timezone_id="Europe/Berlin")
    service = stage.service
    await service.run_sql("update users set proved_at = now() where id = %(id)s", id=organizer.id)
    secret = await service.database.transact(lambda tx: sessions.begin(tx, organizer.id, "link", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    return context
