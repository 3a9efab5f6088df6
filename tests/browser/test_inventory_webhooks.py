"""The pages of webhooks of merchants in Chromium: accessible, and in every width."""

from pathlib import Path
from typing import Any

from playwright.async_api import Browser

from tests.browser.looking import open_context, parametrize_looks
from tests.browser.merchants import enter, serve_merchant_console
from tests.browser.webhook_pages import faults_of_pages
from tests.helpers.webhook_receiver import ReceiverAnswer
from tests.inventory.console.signing_in import add_merchant
from tests.inventory.webhooks.programs import programs_of


@parametrize_looks
async def test_the_pages_of_webhooks_of_a_shop_have_no_faults_of_accessibility_and_fit(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        shop = await scene.inventory.create_shop()
        await add_merchant(scene.inventory, shop)
        statuses = [204, 500]
        async for programs in programs_of(scene.inventory):
            program = await programs.add(shop, "stock.changed", "stock.low")
            program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0) if statuses else 204)
            pool = await shop.create_pool(50, name="Honey jars")
            await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)
            await program.messages()
            await scene.inventory.sql(f"update webhook_endpoints set url = 'https://shop.example/{'w' * 90}'")
            message = program.receiver.received[-1].id
            context = await open_context(chromium, scheme, width, language)
            page = await context.new_page()
            await enter(page, scene, base_url)
            assert await faults_of_pages(page, base_url, program.endpoint["id"], message) == {}
            await context.close()
