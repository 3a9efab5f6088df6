"""A scanner reads the QR code of a real mail with its camera: a film of the mail's picture is what Chromium sees."""

from collections.abc import AsyncIterator
from email import policy
from email.parser import BytesParser
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest_asyncio
from PIL import Image
from playwright.async_api import expect

from holdfast.events.mails import sending
from holdfast.events.mails.model import MailBatch
from holdfast.events.mails.writing import write
from holdfast.events.settings import Settings
from holdfast.kit.mail import sender
from tests.browser.camera_film import write_film
from tests.browser.conftest import launch_chromium
from tests.browser.entrance import open_scanner, register_organizer
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.log.log_scene import seal_logs
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.people import sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def picture(stage: FormStage, folder: Path) -> Image.Image:
    """The picture in the mail that the only person has got."""

    async def writer(batch: MailBatch) -> list[bytes]:
        return write(batch)

    async def is_sent() -> bool:
        return not await stage.service.run_sql("select from mails where ended_at is null")

    await seal_logs(stage.service)
    async with run_in_background(sender.run(stage.service.database, partial(sending.render, writer))):
        await eventually(is_sent)
    return attached_picture(folder)


def attached_picture(folder: Path) -> Image.Image:
    """The picture in the only mail of a folder. Without a mail server, mails become files."""
    [file] = folder.rglob("*.eml")
    mail = BytesParser(policy=policy.default).parsebytes(file.read_bytes())
    [part] = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    return Image.open(BytesIO(part.get_content())).convert("L")


async def test_a_camera_reads_the_code_of_a_mail_without_a_network(stage: FormStage, settings: Settings) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann")
    await stage.service.run_sql("delete from mails where recipient <> 'ann@example.com'")
    path = settings.data_dir / "camera.y4m"
    write_film(await picture(stage, settings.data_dir), path)
    seen = f"--use-file-for-fake-video-capture={path}"
    async with launch_chromium(
        "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", seen
    ) as chromium:
        context = await chromium.new_context()
        watch = Watch(context)
        page = await open_scanner(stage, context, event["id"], "Door 1")
        await context.set_offline(True)

        await page.get_by_role("button", name="Scan with the camera").click()

        await expect(page.locator("#verdict")).to_contain_text("✓ Valid", timeout=20_000)
        await expect(page.locator("#verdict")).to_contain_text("Ann Example")
        await page.get_by_role("button", name="Stop the camera").click()
        await expect(page.locator("#camera")).to_be_hidden()
        # It stays in the picture all the time, and is one scan all the same.
        await expect(page.locator("#unsent")).to_contain_text("1")
        await context.set_offline(False)
        await expect(page.locator("#unsent strong")).to_have_text("0", timeout=15_000)
        assert [failure for failure in watch.failures if "ERR_INTERNET_DISCONNECTED" not in failure] == []
    assert await stage.service.run_sql("select is_entry from check_in_scans") == [(True,)]
