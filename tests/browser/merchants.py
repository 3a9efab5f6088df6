"""The merchants' console at an address, beside the platform."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Page

from holdfast_demo.shopify.site import BRIDGE
from tests.browser.looking import submit
from tests.helpers.databases import scratch_database
from tests.helpers.inventory_service import unlimited
from tests.helpers.platform_shop import PlatformScene, open_platform_scene
from tests.helpers.serving import bind_port, running_already, serve_app
from tests.inventory.console.signing_in import Owner


class MerchantStage(NamedTuple):
    scene: PlatformScene
    base_url: str


@contextlib.asynccontextmanager
async def serve_merchant_console(template: str, tmp_path: Path) -> AsyncGenerator[MerchantStage]:
    """The service at an address, and the platform beside it."""
    port = bind_port()
    base_url = port.url
    with scratch_database(template, "console") as url:
        async with open_platform_scene(unlimited(url, tmp_path), base_url) as scene:
            # The service reads this setting with every page.
            object.__setattr__(scene.inventory.settings, "app_bridge", f"{scene.platform.address}{BRIDGE}")
            async with serve_app(running_already(scene.inventory.app), port):
                yield MerchantStage(scene, base_url)


async def enter(page: Page, scene: PlatformScene, base_url: str) -> None:
    """Sign the owner of the shop in, by a link."""
    [(id,)] = await scene.inventory.sql(
        "insert into sign_in_links (email, return_to) values ('ada@example.com', '/console') returning id"
    )
    await page.goto(base_url + Owner(scene.inventory).path(id))
    await submit(page.locator("main button"))
