"""The main work of an organizer in Chromium, from the link in a mail to the check-in.

Signs in by the link, creates an event with a photo, sees a registration arrive that a guest makes in another browser,
exports the list, and lets the person in by the QR code of the mail, while there is no network.
"""

import asyncio
import csv
import io
from pathlib import Path

from PIL import Image
from playwright.async_api import expect

from holdfast.events.log import sealing
from holdfast.events.mails import sending
from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from tests.browser.camera_film import write_film
from tests.browser.conftest import launch_chromium
from tests.browser.console import drop_files, fill_event_form
from tests.browser.registering import Watch, serve_stage, wait_for_mail
from tests.helpers.background_loops import run_in_background
from tests.helpers.pictures import picture
from tests.helpers.smtp import MailServer, mail_server


def code(server: MailServer, email: str) -> Image.Image:
    """The picture in the mail that a guest has got about a seat."""
    [pictures] = [
        [part for part in message.mail.walk() if part.get_content_type() == "image/png"]
        for message in server.received
        if message.recipient == email
    ]
    return Image.open(io.BytesIO(pictures[0].get_content())).convert("L")


async def test_an_organizer_signs_in_by_mail_publishes_watches_exports_and_checks_in(settings: Settings) -> None:
    path = settings.data_dir / "camera.y4m"
    seen = f"--use-file-for-fake-video-capture={path}"
    with mail_server() as server:
        async with (
            serve_stage(settings.model_copy(update=server.settings)) as stage,
            run_in_background(
                settlement.LOOP.run(stage.service.database),
                sealing.LOOP.run(stage.service.database),
                sending.run(stage.service.database),
            ),
            launch_chromium("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", seen) as chromium,
        ):
            await stage.service.organizer("Ada Events", is_proved=False, email="ada@example.com")
            ada, ann = [await chromium.new_context(locale="en-US", accept_downloads=True) for _ in range(2)]
            watch = Watch(ada)
            page = await ada.new_page()

            await page.goto(f"{stage.base_url}/sign-in?return_to=%2Fconsole%2Fevents%2Fnew")
            await page.get_by_label("E-mail address").fill("ada@example.com")
            await page.get_by_label("E-mail address").press("Enter")
            text = await wait_for_mail(server, "ada@example.com", "Sign in to")
            [link] = [word for word in text.split() if "/sign-in/" in word]
            await page.goto(link)
            await page.get_by_role("button", name="Sign in").click()
            await page.get_by_role("button", name="It is mine: keep it").click()

            await fill_event_form(page)
            await drop_files(page, studio=picture())
            await page.get_by_role("button", name="Publish").click()
            await expect(page.get_by_role("heading", name="Pottery")).to_be_visible()
            event = page.url.partition("?")[0].rstrip("/").rpartition("/")[2]
            assert await page.locator("main img").count() == 1

            await page.goto(f"{stage.base_url}/console/events/{event}/registrations")
            await expect(page.get_by_text("Nobody is registered yet.")).to_be_visible()
            form = await ann.new_page()
            await form.goto(f"{stage.base_url}/events/{event}/embed")
            await form.get_by_label("E-mail address").fill("ann@example.com")
            await form.get_by_label("E-mail address").press("Enter")
            await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible(timeout=20_000)

            async with page.expect_download() as download:
                await page.get_by_role("link", name="Export as CSV").click()
            content = await asyncio.to_thread(Path(await (await download.value).path()).read_bytes)
            assert content.startswith(b"\xef\xbb\xbf")
            rows = [*csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))]
            assert [row[:3] for row in rows[1:]] == [["ann@example.com", "", "Seat"]]

            await wait_for_mail(server, "ann@example.com", "You have a seat")
            write_film(code(server, "ann@example.com"), path)
            await page.goto(f"{stage.base_url}/console/events/{event}/check-in")
            await expect(page.locator("body[data-kept]")).to_be_attached()
            await expect(page.locator("#list time")).not_to_be_empty()
            await ada.set_offline(True)
            await page.get_by_role("button", name="Scan with the camera").click()
            await expect(page.locator("#verdict")).to_contain_text("✓ Valid", timeout=20_000)
            await page.get_by_role("button", name="Stop the camera").click()
            assert await stage.service.run_sql("select from check_in_scans") == []
            await ada.set_offline(False)
            await expect(page.locator("#unsent strong")).to_have_text("0", timeout=20_000)

            assert await stage.service.run_sql("select device, is_entry from check_in_scans") == [("Door 1", True)]
            assert [failure for failure in watch.failures if "ERR_INTERNET_DISCONNECTED" not in failure] == []
