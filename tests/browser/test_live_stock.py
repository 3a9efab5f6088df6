"""Live pages of the stock in two browsers: changes by merchants and agents appear for another merchant."""

from pathlib import Path

from playwright.async_api import Browser, BrowserContext, expect

from holdfast.inventory.shops.model import SCOPES
from holdfast_demo.shopify.seed import add_more
from tests.browser.link_following import open_live
from tests.browser.looking import submit
from tests.browser.merchants import MerchantStage, serve_merchant_console
from tests.browser.page_costs import measure_page
from tests.browser.registering import Watch
from tests.browser.visitors import PHONE
from tests.helpers.inventory_service import PACKS, Shop
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.sync.sync_scene import SyncScene


async def import_products(stage: MerchantStage) -> SyncScene:
    """The shop with imported products, of which four are sold in packs, and its agent."""
    scene, base_url = stage
    add_more(scene.platform.state, DOMAIN)
    await scene.install(base_url)
    shop = await scene.find_shop()
    platform = SyncScene(scene, shop)
    await platform.finish_import()
    await scene.inventory.regenerate_key(shop, *SCOPES)
    return platform


async def signed_in(chromium: Browser, stage: MerchantStage, shop: Shop, email: str) -> BrowserContext:
    """The browser of a merchant of the shop, who has signed in."""
    inventory = stage.scene.inventory
    await add_merchant(inventory, shop, email)
    owner = await Owner(inventory).sign_in(email)
    context = await chromium.new_context(locale="en-US", reduced_motion="reduce")
    for name, value in owner.http.cookies.items():
        await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
    return context


async def test_the_pages_of_the_stock_show_what_other_merchants_and_agents_do(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as stage:
        platform = await import_products(stage)
        shop, base_url = platform.shop, stage.base_url
        ada = await signed_in(chromium, stage, shop, "ada@example.com")
        ben = await (await signed_in(chromium, stage, shop, "ben@example.com")).new_page()
        watch = Watch(ada)
        console = f"{base_url}/console"

        # Another merchant accepts a suggestion.
        suggestions = await open_live(ada, f"{console}/suggestions")
        pools = await open_live(ada, console)
        sync = await open_live(ada, f"{console}/sync")
        changing = await open_live(ada, f"{console}/suggestions")
        await changing.locator("summary", has_text="Rename").last.click()
        await changing.locator("[name=name]").last.fill("Boxes of mine")
        await expect(suggestions.locator("#suggestions li form")).to_have_count(4)
        await expect(sync.get_by_text("Nothing to sync yet.")).to_be_visible()
        await ben.goto(f"{console}/suggestions")
        await submit(ben.locator("#suggestions li form button").first)
        await expect(suggestions.locator("#suggestions li form")).to_have_count(3)
        await expect(suggestions.locator("#theme")).to_be_visible()
        await expect(pools.locator("#list tbody tr")).to_have_count(1)
        await platform.sync_due()
        await expect(sync.locator(".sync-line.good")).to_be_visible()
        # What the merchant has changed stays under the hands.
        await expect(changing.locator("#theme")).to_be_visible()
        await expect(changing.locator("[name=name]").last).to_have_value("Boxes of mine")
        for page in (suggestions, changing, pools, sync):
            await page.close()

        # An agent keeps some of it for a buyer.
        [pool] = (await shop.call("list_pools"))["pools"]
        members = (await shop.call("get_pool", pool_id=pool["id"]))["members"]
        pool_page = f"{console}/pools/{pool['id']}"
        holds = await open_live(ada, f"{console}/holds")
        low_stock = await open_live(ada, f"{console}/low-stock?threshold=9")
        history = await open_live(ada, f"{pool_page}/history")
        variant = await open_live(ada, f"{console}/variant?gid={members[0]['variant_gid']}")
        level = await open_live(ada, pool_page)
        await expect(low_stock.locator("#list tbody tr")).to_have_count(0)
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=3, reference="cart 7")
        await expect(holds.locator("#holds li")).to_contain_text("cart 7")
        await expect(history.locator("#entries li")).to_have_count(2)
        await expect(variant.locator("#explanation")).to_contain_text("\u2212 3 units")

        # Another merchant ends the hold, and counts.
        await ben.goto(f"{console}/holds")
        await ben.locator("#holds summary").click()
        await submit(ben.locator("#holds form button"))
        await expect(holds.locator("#holds li")).to_have_count(0)
        await ben.goto(f"{pool_page}/count")
        await ben.locator("[name=quantity]").fill("7")
        await submit(ben.locator("main form button"))
        await expect(level.locator("#now")).to_contain_text("7")
        await expect(history.locator("#entries li")).to_have_count(4)
        await expect(variant.locator("#explanation")).to_contain_text("7 units")
        await expect(low_stock.locator("#list tbody tr")).to_have_count(1)
        assert watch.failures == []


async def test_pages_of_a_pool_move_little_while_they_load_on_a_slow_phone(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as stage:
        shop = (await import_products(stage)).shop
        pool = await shop.create_pool(50, members=PACKS)
        ada = await signed_in(chromium, stage, shop, "ada@example.com")
        page = await ada.new_page()
        await page.set_viewport_size({"width": PHONE, "height": 900})

        shifts = {
            path: (await measure_page(ada, f"{stage.base_url}/console{path}")).shift
            for path in ("", *(f"/pools/{pool['id']}{end}" for end in ("", "/variants", "/count", "/adjust")))
        }

        assert {path: shift for path, shift in shifts.items() if shift >= 0.1} == {}
        await ada.close()
