"""Live pages under the hands of a person: what is pressed stays until it is released, and what is focused stays so."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Locator, Page, expect

from holdfast.events.settings import Settings
from holdfast.inventory.shops.model import SCOPES
from holdfast_demo.shopify.seed import add_more
from tests.browser.looking import open_context
from tests.browser.merchants import enter, serve_merchant_console
from tests.browser.registering import serve_stage
from tests.events.queues.guarded import guard
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.signing_in import add_merchant
from tests.inventory.sync.sync_scene import SyncScene

SUGGESTIONS = "/console/suggestions"


class Suggestions(NamedTuple):
    """The page with suggestions of pools, open in Chromium, and its shop."""

    page: Page
    shop: Shop

    @property
    def accept(self) -> Locator:
        return self.page.get_by_role("button", name="Make this pool Beeswax candles")

    async def fetch_again(self) -> None:
        """Let the page fetch itself, and wait until it has the answer."""
        await self.page.evaluate("refresh()")

    async def change(self) -> None:
        """Make a pool of another suggestion elsewhere, and wait until the page has fetched itself."""
        async with self.page.expect_response(lambda response: SUGGESTIONS in response.url) as fetched:
            await self.shop.call(
                "create_pool",
                name="Lavender soap",
                quantity=1,
                members=[{"variant_gid": await self.gid_of("Lavender soap"), "units_per_sale": 1}],
            )
        await (await fetched.value).finished()
        await eventually(lambda: self.page.evaluate("!isFetching"))

    async def gid_of(self, name: str) -> str:
        form = self.page.locator("form", has=self.page.get_by_role("button", name=f"Make this pool {name}"))
        return await form.locator("[name=suggestion]").get_attribute("value") or ""


@contextlib.asynccontextmanager
async def open_suggestions(chromium: Browser, inventory_template: str, tmp_path: Path) -> AsyncGenerator[Suggestions]:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        add_more(scene.platform.state, DOMAIN)
        await scene.install(base_url)
        shop = await scene.find_shop()
        await SyncScene(scene, shop).finish_import()
        await add_merchant(scene.inventory, shop)
        await scene.inventory.regenerate_key(shop, *SCOPES)
        page = await (await open_context(chromium, "light", 1280, "en")).new_page()
        await enter(page, scene, base_url)
        async with page.expect_response(lambda response: "/console/stream" in response.url):
            await page.goto(f"{base_url}{SUGGESTIONS}")
        await eventually(lambda: page.evaluate("events?.readyState === EventSource.OPEN"))
        yield Suggestions(page, shop)


async def test_a_button_is_pressed_though_the_page_changes_before_it_is_released(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with open_suggestions(chromium, inventory_template, tmp_path) as suggestions:
        page = suggestions.page
        await suggestions.accept.hover()
        await page.mouse.down()
        await suggestions.change()
        await page.mouse.up()

        await expect(page.get_by_text("Beeswax candles is a pool now.")).to_be_visible()


async def test_a_change_that_came_while_a_person_pressed_is_shown_when_they_release(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with open_suggestions(chromium, inventory_template, tmp_path) as suggestions:
        page = suggestions.page
        await page.locator("h1").hover()
        await page.mouse.down()
        await suggestions.change()
        soap = page.get_by_role("button", name="Make this pool Lavender soap")
        await expect(soap).to_be_visible()
        await page.mouse.up()

        await expect(soap).to_have_count(0)


async def test_a_part_that_is_the_same_stays_with_the_newest_values_of_its_forms(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with open_suggestions(chromium, inventory_template, tmp_path) as suggestions:
        button = await suggestions.accept.element_handle()
        once = suggestions.page.locator("[name=once]").first
        before = await once.get_attribute("value") or ""

        await suggestions.fetch_again()

        await expect(once).not_to_have_attribute("value", before)
        assert await button.evaluate("(button) => button.isConnected")


async def test_a_button_without_a_name_stays_focused_when_its_part_changes(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with open_suggestions(chromium, inventory_template, tmp_path) as suggestions:
        await suggestions.accept.focus()

        await suggestions.change()

        await expect(suggestions.page.get_by_role("button", name="Make this pool Lavender soap")).to_have_count(0)
        await expect(suggestions.accept).to_be_focused()


REFRESH = "() => { void refresh(); return fetch(location.href).then((answer) => answer.text()); }"
"""Lets a page fetch itself, and waits for another answer after that."""


async def test_a_link_of_an_outcome_is_followed_though_the_page_changes_before_it_is_released(
    chromium: Browser, settings: Settings
) -> None:
    async with serve_stage(settings, capacity=3) as stage:
        page = await (await chromium.new_context()).new_page()
        await page.goto(stage.event["public_url"])
        await page.get_by_label("E-mail address").fill("ann@example.com")
        await page.get_by_role("button", name="Register").click()
        await page.locator("h1 a").hover()
        await page.mouse.down()
        await stage.service.settle()
        await page.evaluate(REFRESH)
        await page.mouse.up()

        await expect(page).to_have_url(stage.event["public_url"])


async def test_a_link_of_a_waiting_room_is_followed_though_the_room_changes_before_it_is_released(
    chromium: Browser, settings: Settings
) -> None:
    async with serve_stage(settings) as stage:
        guarded = await guard(stage.service)
        page = await (await chromium.new_context()).new_page()
        await page.goto(f"{stage.base_url}/queues/{guarded.queue.id}")
        await page.get_by_role("link", name="About the event").hover()
        await page.mouse.down()
        await page.evaluate(REFRESH)
        await page.mouse.up()

        await expect(page).to_have_url((await guarded.event())["public_url"])
