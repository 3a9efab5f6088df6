"""The merchants' console in Chromium, in the admin of a shop and in a window of its own: it is accessible."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page, expect

from holdfast.inventory.replays import operations as replays
from holdfast.inventory.replays.model import ReplayTask
from holdfast.inventory.shops.model import SCOPES
from holdfast_demo.shopify.seed import add_more, add_past
from tests.browser.looking import open_boxes, open_context, parametrize_looks, too_wide, violations
from tests.browser.merchants import enter, serve_merchant_console
from tests.browser.person import at_task
from tests.helpers.inventory_service import PACKS, SIX_PACK
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.signing_in import add_merchant
from tests.inventory.sync.sync_scene import SyncScene

POOLS = {"en": "Pools", "de": "Pools"}
AGENTS = {"en": "Agents", "de": "Agenten"}
NEW_KEY = {"en": "Replace the key", "de": "Schlüssel ersetzen"}
RENEW = {"en": "Replace the key", "de": "Schlüssel ersetzen"}
CHANGE = {"en": "Change the units per sale?", "de": "Den Verbrauch je Verkauf ändern?"}
SHOW = {"en": "Show the key", "de": "Schlüssel zeigen"}

SOON = 20_000
"""Milliseconds in which a page has followed a change, also on a machine with much to do."""

FORMS = ("adjust", "count", "transfer", "edit", "pause", "archive")
"""Pages of a pool with a form."""


async def looked_at(page: Page) -> None:
    assert await violations(page) == []
    assert await too_wide(page) == []


def watch_page(page: Page) -> list[str]:
    """What goes wrong in a page, as it happens."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    return faults


@parametrize_looks
async def test_a_merchant_installs_the_app_in_the_admin_and_makes_a_new_key_in_its_frame(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        faults = watch_page(page)

        await page.goto(f"{scene.platform.address}/{DOMAIN}/admin/apps/holdfast")
        await page.get_by_role("button", name="Install").click()
        frame = page.frame_locator("iframe")
        await expect(frame.locator("h1")).to_have_text(POOLS[language])
        await looked_at(page)
        await page.get_by_role("link", name=AGENTS[language]).click()
        await frame.get_by_text(SHOW[language]).click()
        key = await frame.locator("#key").inner_text()
        shop = await scene.find_shop(key)
        assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}

        await frame.get_by_role("link", name=NEW_KEY[language]).click()
        await frame.get_by_role("button", name=RENEW[language]).click()
        await frame.get_by_text(SHOW[language]).click()

        assert await frame.locator("#key").inner_text() != key
        assert (await shop.send_call("list_pools", {})).status_code == 401
        assert faults == []
        # Without its session, the page asks the admin around it who is there, and goes on.
        await context.clear_cookies()
        await page.get_by_role("link", name=POOLS[language], exact=True).click()
        await expect(frame.locator("h1")).to_have_text(POOLS[language])
        assert [urlsplit(frame.url).netloc for frame in page.frames[1:]] == [urlsplit(base_url).netloc]
        assert faults == []
        await context.close()


async def test_the_page_of_a_pool_follows_an_agent_in_the_frame(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, _):
        scene.platform.install(DOMAIN)
        context = await open_context(chromium, "light", 1280, "en")
        page = await context.new_page()
        faults = watch_page(page)
        await page.goto(f"{scene.platform.address}/{DOMAIN}/admin/apps/holdfast")
        frame = page.frame_locator("iframe")
        await expect(frame.locator("h1")).to_have_text("Pools")
        shop = await scene.find_shop()
        await scene.inventory.regenerate_key(shop, *SCOPES)
        await shop.create_golden_pool()
        # The chart is drawn once there are two days to draw. The history refuses every change, so its triggers rest.
        for statement in (
            "alter table ledger disable trigger user",
            "update ledger set created_at = created_at - interval '3 days'",
            "alter table ledger enable trigger user",
        ):
            await scene.inventory.sql(statement)
        await page.get_by_role("link", name="Pools", exact=True).click()
        await frame.get_by_role("link", name="Honey jars", exact=True).click()
        await frame.get_by_text("Show as a table").click()
        await frame.get_by_role("link", name="Count stock").focus()
        picture = frame.locator("figure path.line")
        before = await picture.get_attribute("d") or ""
        await frame.locator("main").evaluate("(main) => (main.dataset.was = 'there')")

        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)

        await expect(frame.locator("#now")).to_contain_text("44 units can be sold", timeout=SOON)
        await expect(picture).not_to_have_attribute("d", before)
        await expect(frame.locator("#moments tbody tr").nth(1)).to_contain_text("44Sales")
        await expect(frame.locator("#draws tbody tr").first).to_contain_text("6 units")
        await expect(frame.locator("#entries li").first).to_contain_text(
            "An agent sold 6 units: 1 \N{MULTIPLICATION SIGN} Variant 1006"
        )
        await expect(frame.locator("#members tbody tr").first).to_contain_text("44")
        await expect(frame.locator("main")).to_have_attribute("data-was", "there")
        await expect(frame.locator("#moments")).to_have_attribute("open", "")
        await expect(frame.get_by_role("link", name="Count stock")).to_be_focused()

        # What is focused stays so where everything around it is new.
        await frame.get_by_role("link", name="How it is calculated").first.focus()
        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
        await expect(frame.locator("#members tbody tr").first).to_contain_text("38", timeout=SOON)
        await expect(frame.get_by_role("link", name="How it is calculated").first).to_be_focused()

        # When the session has ended, the admin says again who is there.
        await context.clear_cookies()
        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
        await expect(frame.locator("#now")).to_contain_text("32 units can be sold", timeout=SOON)
        assert faults == []
        await context.close()


@parametrize_looks
async def test_a_merchant_sees_the_last_thirty_days_with_pools_and_then_accepts_all_suggestions(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        add_past(scene.platform.state, DOMAIN)
        await scene.install(base_url)
        shop = await scene.find_shop()
        await scene.inventory.regenerate_key(shop, *SCOPES)
        await SyncScene(scene, shop).finish_import()
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        faults = watch_page(page)
        await page.goto(f"{scene.platform.address}/{DOMAIN}/admin/apps/holdfast")
        frame = page.frame_locator("iframe")
        async with at_task(context, "see the last 30 days with pools, and accept all suggestions") as person:
            await person.click(frame.locator("a[href*='/console/suggestions']").first)
            await person.click(frame.locator(".replay-first button"))
            await expect(frame.locator("#replay .empty")).to_be_visible()
            [(replay_id,)] = await scene.inventory.sql("select replay_id from replays")
            await replays.advance(scene.steps_of(shop), ReplayTask(shop.id, replay_id))
            # The page follows by itself.
            await expect(frame.locator(".level")).to_be_visible(timeout=SOON)
            await expect(frame.locator(".replay")).to_have_count(2)
            await looked_at(page)
            await person.click(frame.locator("#replay a.button[href*='/console/suggestions']"))
            await expect(frame.locator("img.product").first).to_be_visible()
            await looked_at(page)
            await person.click(frame.locator("button[value='all']"))
            await expect(frame.locator("#theme a")).to_be_visible()

        assert person.clicks == 4
        names = [pool["name"] for pool in (await shop.call("list_pools"))["pools"]]
        assert names == ["Chestnut honey", "Elderflower syrup", "Honey jars"]
        await frame.locator(".head a.button[href^='/console?']").click()
        await expect(frame.locator("tbody img.product")).to_have_count(3)
        await looked_at(page)
        assert faults == []
        await context.close()


async def test_a_merchant_makes_three_pools_from_imported_products(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        add_more(scene.platform.state, DOMAIN)
        await scene.install(base_url)
        shop = await scene.find_shop()
        await SyncScene(scene, shop).finish_import()
        context = await open_context(chromium, "light", 1280, "en")
        page = await context.new_page()
        faults = watch_page(page)
        await page.goto(f"{scene.platform.address}/{DOMAIN}/admin/apps/holdfast")
        frame = page.frame_locator("iframe")
        await expect(frame.get_by_role("img", name="share one stock of jars")).to_be_visible()
        async with at_task(context, "make three pools from imported products") as person:
            await person.click(frame.get_by_role("link", name="Make from products"))
            for name in ("Beeswax candles", "Honey jars", "Lavender soap"):
                await person.click(frame.get_by_role("button", name=f"Make this pool {name}"))
                await expect(page.get_by_role("status")).to_have_text(f"{name} is a pool now.")

        assert person.clicks == 4
        assert await violations(page) == []
        await expect(frame.get_by_role("link", name="Open the theme editor")).to_be_visible()
        await frame.get_by_role("link", name="Your pools").click()
        await expect(frame.locator("tbody tr")).to_have_count(3)
        assert await violations(page) == []

        # Around the frame the admin has the navigation, the title and the save bar; in it the page wears its look.
        await expect(frame.get_by_role("navigation", name="Console")).to_have_count(0)
        await expect(page.locator("[data-title]")).to_have_text("Pools")
        await page.get_by_role("link", name="Settings", exact=True).click()
        await expect(page.locator("[data-title]")).to_have_text("Settings")
        await expect(page.locator("[data-nav] [aria-current]")).to_have_text("Settings")
        await expect(frame.locator("body")).to_have_css("background-color", "rgb(241, 241, 241)")
        await page.get_by_role("link", name="Pools", exact=True).click()
        await frame.get_by_role("link", name="Lavender soap", exact=True).click()
        await frame.get_by_text("More", exact=True).click()
        await frame.get_by_role("link", name="Edit the pool").click()
        await frame.get_by_label("Low stock at").fill("9")
        await page.get_by_role("button", name="Save").click()
        await expect(frame.locator("#facts")).to_contain_text("9 units")
        await expect(page.get_by_role("button", name="Save")).to_be_hidden()
        await page.get_by_role("link", name="Pools", exact=True).click()

        # Who took the last six jars? The page of the pool says so, one click away.
        await scene.inventory.regenerate_key(shop, *SCOPES)
        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
        async with at_task(context, "find out who took the last six jars") as person:
            await person.click(frame.get_by_role("link", name="Honey jars", exact=True))
            await expect(frame.locator("#entries li").first).to_contain_text(
                "An agent sold 6 units: 1 \N{MULTIPLICATION SIGN} Honey jars · 6-pack · then 44 on hand"
            )
        assert person.clicks == 1
        assert await violations(page) == []
        assert faults == []
        await context.close()


async def test_a_page_does_not_move_while_a_merchant_counts(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        shop = await scene.inventory.create_shop()
        await add_merchant(scene.inventory, shop)
        pool = await shop.create_golden_pool()
        context = await open_context(chromium, "light", 1280, "en")
        page = await context.new_page()
        await enter(page, scene, base_url)
        await page.goto(f"{base_url}/console/pools/{pool['id']}/count")
        await page.locator("[name=quantity]").fill("48")

        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)

        assert await page.locator("[data-live], script[src$='live.js']").count() == 0
        await page.locator("main button").click()
        await expect(page.locator("[role=alert]")).to_be_visible()
        assert await shop.on_hand(pool["id"]) == 44
        await context.close()


PAGES = (
    "/console/low-stock",
    "/console/holds",
    "/console/spreadsheets",
    "/console/sync",
    "/console/settings",
    "/console/agents",
    "/console/agents/done",
    "/console/agents/key",
    "/console/agents/key/end",
    "/agents",
    "/account",
)


@parametrize_looks
async def test_an_owner_reads_every_page_of_the_console(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        shop = await scene.inventory.create_shop()
        await add_merchant(scene.inventory, shop)
        made = await shop.call("create_pool", name="Honey jars", quantity=50, low_stock_at=60, members=PACKS)
        await shop.call("adjust_pool_quantity", pool_id=made["pool"]["id"], delta=-6, reason="Broken")
        [entry, _] = await shop.entries()
        pool = f"/console/pools/{made['pool']['id']}"
        await shop.call("hold_quantity", pool_id=made["pool"]["id"], quantity=2, reference="cart 7")
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        faults = watch_page(page)

        await enter(page, scene, base_url)
        await expect(page.locator("h1")).to_have_text(POOLS[language])
        await looked_at(page)
        pages = (pool, f"{pool}/history", f"{pool}/entries/{entry['id']}/undo", f"/console/variant?gid={SIX_PACK}")
        forms = [*(f"{pool}/{form}" for form in FORMS), "/console/pools/new"]
        for path in (*pages, *forms, *PAGES, f"{pool}/variants"):
            await page.goto(base_url + path)
            await looked_at(page)
        for path in ("/console/agents", "/agents"):
            await page.goto(base_url + path)
            await open_boxes(page)
            await looked_at(page)
        await page.goto(f"{base_url}{pool}/variants")
        await open_boxes(page)
        await expect(page.locator("button[value=change]").first).to_be_visible()
        await page.locator("[name=units]").first.fill("2")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(CHANGE[language])
        await looked_at(page)
        await page.goto(f"{base_url}/console/spreadsheets")
        sheet = "name;quantity;low_stock_at\nHoney jars;40;7\nGläser, groß und schön;9;\n".encode("mac_roman")
        await page.locator("#file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": sheet})
        await page.locator("form.form button").click()
        await expect(page.locator("#readings")).to_be_visible()
        await looked_at(page)
        assert faults == []
        await context.close()


@parametrize_looks
async def test_a_merchant_who_is_unknown_in_the_frame_reads_what_to_do(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    async with serve_merchant_console(inventory_template, tmp_path) as (scene, base_url):
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()

        await page.goto(f"{base_url}/console?shop={DOMAIN}&entered=1")
        await looked_at(page)
        # In a window of its own the platform's script leads to the admin.
        await page.goto(f"{base_url}/console?shop={DOMAIN}")
        await page.wait_for_url(f"{scene.platform.address}/{DOMAIN}/admin/apps/**")
        await looked_at(page)
        await context.close()
