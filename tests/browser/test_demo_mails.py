"""The mails of the demo in Chromium: they are accessible, and pictures and styles load."""

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from holdfast_demo.mails.viewer import SCRIPTS, SITE, with_viewer
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.registering import Watch
from tests.demo.mails.writing import write
from tests.helpers.serving import application, bind_port, serve_app


@parametrize_looks
async def test_the_list_of_demo_mails_and_a_mail_are_accessible_and_fit(
    chromium: Browser, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    port = bind_port()
    address = port.url
    write(tmp_path / "mail", "one", "W" * 90)
    service = application(*SITE.assets("icon.svg", *SCRIPTS))
    async with serve_app(with_viewer(service, tmp_path / "mail", address), port):
        context = await open_context(chromium, scheme, width, language)
        watch = Watch(context)
        page = await context.new_page()

        await page.goto(f"{address}/mails")
        assert await violations(page) == []
        assert await too_wide(page) == []
        await page.get_by_role("link", name="W" * 90).click()
        await expect(page.frame_locator("iframe").get_by_role("heading")).to_have_text("Hello")

        picture = page.frame_locator("iframe").locator("img")
        assert await picture.evaluate("image => image.naturalWidth") == 1
        assert await violations(page) == []
        assert await too_wide(page) == []
        assert watch.failures == []
        await context.close()
