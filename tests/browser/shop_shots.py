"""Pages of merchants, from the first run to one who has sold for a while; and of the demo shop."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation
from playwright.async_api import Browser, Page

from holdfast.kit.webhooks import LISTEN_PORT
from tests.browser.demonstration import Demonstration, SentMails
from tests.browser.looking import LOCALES, open_boxes, submit
from tests.browser.sheet_people import LANGUAGES, per_look, store_mail, subject_has
from tests.browser.visitors import DESKTOP, SheetVisitor, Shot, signed_in
from tests.helpers.command_line import run_holdfast
from tests.helpers.events_service import eventually

Call = Callable[..., Coroutine[Any, Any, Any]]
"""Calls a tool with its arguments, and returns the result."""

STOCK = (
    ("Arabica beans", "kg", 42, 10),
    ("Rose soap", "units", 40, 12),
    ("Oat biscuits", "packs", 0, 20),
    ("Olive oil", "bottles", 128, 24),
    ("Sea salt", "g", 12_500, 2_000),
    ("Linen towels", "units", 31, None),
    ("Ginger tea", "bags", 640, 100),
    ("Walnut boards", "units", 4, 5),
    ("Wool socks", "pairs", 77, 20),
)
"""Pools of the merchant who has sold for a while: name, unit, quantity, and the limit below which it is low."""


async def shops(chromium: Browser, demonstration: Demonstration, directory: Path) -> list[SheetVisitor]:
    """The merchants, and a customer of the shop of one of them."""
    new, demo, busy, calm = "bees.myshopify.com", "demo.myshopify.com", "hives.myshopify.com", "meadow.myshopify.com"
    for domain in (new, busy, calm):
        await open_shop(chromium, demonstration, domain)
    for domain in (new, demo, busy, calm):
        await install(chromium, demonstration, domain)
    return [
        await new_merchant(demonstration, new),
        await trying_merchant(chromium, demonstration, demo),
        await busy_merchant(chromium, demonstration, busy, directory),
        await customer(chromium, demonstration, calm),
    ]


async def open_shop(chromium: Browser, demonstration: Demonstration, domain: str) -> None:
    """Open a shop at the platform."""
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(demonstration.shops)
        await open_boxes(page)
        await page.locator("#domain").fill(domain)
        await submit(page.locator("form:has(#domain) button"))


async def install(chromium: Browser, demonstration: Demonstration, domain: str) -> None:
    """Install the app in a shop."""
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(f"{demonstration.shops}/{domain}/admin/apps/holdfast")
        await page.get_by_role("button", name="Install").click()
        await page.frame_locator("iframe").locator("h1").wait_for()


async def merchant_of(demonstration: Demonstration, domain: str, name: str) -> SheetVisitor:
    """The owner of a shop, whom the operator has named."""
    await run(demonstration, "shop", "owner", domain, f"{name.partition(' ')[0]}@example.com")
    [link] = re.findall(r"http://\S+/sign-in/\S+", await run(demonstration, "console-link", domain))
    return SheetVisitor(name, [], links=(link,))


async def run(demonstration: Demonstration, *words: str) -> str:
    """What a command of the inventory service says."""
    done = await asyncio.to_thread(run_holdfast, "inventory", *words, HOLDFAST_DATA_DIR=str(demonstration.data_dir))
    assert done.returncode == 0, done.stderr
    return done.stdout


@asynccontextmanager
async def agent_of(demonstration: Demonstration, domain: str) -> AsyncGenerator[Call]:
    """An agent that has the key of a shop."""
    [key] = re.findall(r"hf_\S+", await run(demonstration, "shop", "key", domain))
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http,
        Client(
            streamable_http_client(f"{demonstration.inventory}/mcp", http_client=http),
            client_info=Implementation(name="Claude", version="1"),
        ) as client,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            return (await client.call_tool(tool, arguments)).structured_content

        yield call


async def import_products(call: Call) -> None:
    """Wait until the products of the shop are known."""

    async def is_imported() -> bool:
        return (await call("get_sync_status"))["imported"]["status"] == "done"

    await eventually(is_imported, 40)


async def honey_packs(call: Call) -> list[dict[str, Any]]:
    """The packs of honey jars, as members of a pool."""
    units = {"Single": 1, "6-pack": 6, "12-pack": 12}
    return [
        {"variant_gid": variant["variant_gid"], "units_per_sale": units[variant["title"]]}
        for variant in (await call("search_variants", query="honey"))["variants"]
        if variant["title"] in units and "jars" in variant["product_title"]
    ]


async def new_merchant(demonstration: Demonstration, domain: str) -> SheetVisitor:
    """A merchant whose shop has just installed the app."""
    merchant = await merchant_of(demonstration, domain, "new merchant")
    console = f"{demonstration.inventory}/console"
    async with agent_of(demonstration, domain) as call:
        await import_products(call)
    return merchant._replace(
        shots=(
            Shot("first run", (console,)),
            Shot("first run, suggestions", (f"{console}/suggestions",)),
            Shot("first run, sync", (f"{console}/sync",)),
            Shot("first run, low stock", (f"{console}/low-stock",)),
        )
    )


async def trying_merchant(chromium: Browser, demonstration: Demonstration, domain: str) -> SheetVisitor:
    """A merchant who sees what the last 30 days would have been."""
    merchant = await merchant_of(demonstration, domain, "trying merchant")
    console = f"{demonstration.inventory}/console"
    async with agent_of(demonstration, domain) as call:
        await import_products(call)
    async with await signed_in(chromium, merchant, "light", DESKTOP, "en") as context:
        page = await context.new_page()
        await page.goto(f"{console}/suggestions")
        await submit(page.locator(".replay-first button"))
        await page.locator("#replay .level").first.wait_for(timeout=90_000)
    return merchant._replace(
        shots=(
            Shot("suggestions", (f"{console}/suggestions",)),
            Shot("replay of 30 days", (f"{console}/replay",)),
            Shot("connected, pools", (console,)),
            Shot("connected, sync", (f"{console}/sync",)),
        )
    )


async def busy_merchant(chromium: Browser, demonstration: Demonstration, domain: str, directory: Path) -> SheetVisitor:
    """A merchant with pools, sales, holds, differences, an agent that asks, and a webhook that fails."""
    merchant = await merchant_of(demonstration, domain, "busy merchant")
    console = f"{demonstration.inventory}/console"
    async with agent_of(demonstration, domain) as call:
        await import_products(call)
        members = await honey_packs(call)
        honey = (await call("create_pool", name="Honey jars", quantity=96, low_stock_at=24, members=members))["pool"][
            "id"
        ]
        pool_ids = {
            name: (await call("create_pool", name=name, unit=unit, quantity=quantity, low_stock_at=low))["pool"]["id"]
            for name, unit, quantity, low in STOCK
        }
        await call("adjust_pool_quantity", pool_id=honey, delta=-2, reason="Broken in the store")
        await call("update_pool", pool_id=honey, policy="flag")
        for number in (2, 6, 1):
            await call("hold_quantity", pool_id=honey, quantity=number, reference=f"Cart {number}07")
    await sign_in_partner(chromium, demonstration, domain)
    async with await signed_in(chromium, merchant, "light", DESKTOP, "en") as context:
        page = await context.new_page()
        webhook = await add_webhook(page, console)
        await sell_and_count(page, demonstration, domain)
        # Only a merchant who has signed in gets mails.
        async with agent_of(demonstration, domain) as call:
            soap = pool_ids["Rose soap"]
            await call("adjust_pool_quantity", pool_id=soap, delta=-31, reason="Sold at the market")
        await let_it_ask_first(page, console)
    async with agent_of(demonstration, domain) as call:
        await call("adjust_pool_quantity", pool_id=honey, delta=-12, reason="Moved to the market stall")
        await call("create_pool", name="Apple rings", quantity=40)
    mails = [await shop_mail(demonstration, directory / "mails", name, subjects) for name, subjects in MAILS.items()]
    return merchant._replace(
        shots=(
            Shot("pools", (console,)),
            Shot("pool with sales", (f"{console}/pools/{honey}",)),
            Shot("history of a pool", (f"{console}/pools/{honey}/history",)),
            Shot("variants of a pool", (f"{console}/pools/{honey}/variants",)),
            Shot("low stock with rows", (f"{console}/low-stock",)),
            Shot("holds with rows", (f"{console}/holds",)),
            Shot("sync with differences", (f"{console}/sync",)),
            Shot("import, what would change", (f"{console}/spreadsheets",), send_sheet),
            Shot("agents with a request", (f"{console}/agents",)),
            Shot("webhooks, one fails", (f"{console}/webhooks",)),
            Shot("a webhook that fails", (webhook,)),
            Shot("settings, connected", (f"{console}/settings",)),
            *mails,
        )
    )


async def sign_in_partner(chromium: Browser, demonstration: Demonstration, domain: str) -> None:
    """Have another person of the shop, who reads German, sign in by a link."""
    await run(demonstration, "shop", "owner", domain, "partner@example.com")
    async with await chromium.new_context(locale=LOCALES["de"]) as context:
        page = await context.new_page()
        await page.goto(f"{demonstration.inventory}/sign-in")
        await page.locator("#email").fill("partner@example.com")
        await page.locator("#email").press("Enter")
        await page.wait_for_url("**/sign-in/sent")
        await page.goto(await SentMails(demonstration.mails).find_sign_in_link("partner@example.com"))
        await submit(page.locator("main form button").first)


MAILS = {
    "request of a shop's agent": ("Claude asks", "Claude bittet"),
    "low stock": ("Low stock:", "Knapper Bestand:"),
}
"""The mails to the merchant and to the partner, who reads German, by their names, with how their subjects begin."""


async def shop_mail(demonstration: Demonstration, directory: Path, name: str, subjects: tuple[str, str]) -> Shot:
    """A mail to the people of the shop, in both languages."""
    pages: list[str] = []
    for language, person, subject in zip(LANGUAGES, ("busy", "partner"), subjects, strict=True):
        mail = await SentMails(demonstration.mails).find(f"{person}@example.com", subject_has(subject))
        file = f"{name.replace(' ', '-').replace(chr(39), '')}-{language}"
        pages.append(await asyncio.to_thread(store_mail, mail, directory, file))
    return Shot(f"mail, {name}", per_look(pages))


async def add_webhook(page: Page, console: str) -> str:
    """Make a webhook to a program that does not run. Returns the address of its page."""
    await page.goto(f"{console}/webhooks/new")
    await page.locator("input[name=url]").fill(f"http://127.0.0.1:{LISTEN_PORT}/")
    await submit(page.locator("form:has(input[name=url]) button").last)
    await page.goto(f"{console}/webhooks")
    path = await page.locator(
        "main a[href*='/console/webhooks/']:not([href$='/new'], [href$='/receive'])"
    ).first.get_attribute("href")
    return f"{console.removesuffix('/console')}{path}"


async def sell_and_count(page: Page, demonstration: Demonstration, domain: str) -> None:
    """Sell packs in the shop, and change a number there without the app."""
    for _ in range(3):
        await page.goto(f"{demonstration.shops}/{domain}")
        await submit(page.locator("form[action$='/sell'] button").nth(1))
    path = await page.locator("a[href*='/variants/']").first.get_attribute("href")
    await page.goto(f"{demonstration.shops}{path}")
    await page.locator("input[name=available]").first.fill("70")
    await submit(page.locator("form:has(input[name=available]) button").first)


async def let_it_ask_first(page: Page, console: str) -> None:
    """Have the agent ask before it changes anything."""
    await page.goto(f"{console}/agents")
    await page.locator("a[href*='/agents/limit']").first.click()
    for name in ("asks_first", "mails_requests"):
        await page.locator(f"input[name={name}]").check()
    await submit(page.locator("form:has(input[name=asks_first]) button").first)


async def send_sheet(page: Page) -> None:
    """Send a table to be imported."""
    rows = "name,quantity,low_stock_at\nHoney jars,90,30\nOlive oil,120,24\nCandied lemon,14,5\n"
    file: Any = {"name": "stock.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    await page.locator("#file").set_input_files(file)
    await submit(page.locator("form:has(#file) button").last)
    await page.wait_for_load_state()


async def customer(chromium: Browser, demonstration: Demonstration, domain: str) -> SheetVisitor:
    """A merchant at the platform: the admin with the app in its frame, and the shop after sales."""
    shop = f"{demonstration.shops}/{domain}"
    async with agent_of(demonstration, domain) as call:
        await import_products(call)
        await call("create_pool", name="Honey jars", quantity=50, low_stock_at=12, members=await honey_packs(call))
    async with await chromium.new_context(locale=LOCALES["en"]) as context:
        page = await context.new_page()
        await page.goto(shop)
        await submit(page.locator("form[action$='/sell'] button").nth(1))
    return SheetVisitor(
        "customer",
        [],
        shots=(
            Shot("admin of the platform, with the app", (f"{shop}/admin/apps/holdfast",), wait_for_frame),
            Shot("shop after sales", (shop,)),
            Shot("product after sales", (f"{shop}/products/honey-jars",)),
            Shot("side by side, installed", (f"{shop}/side-by-side",), wait_for_frame),
            Shot("cart after paying", (f"{shop}/cart",), pay_cart),
            Shot("inventory, sign in, signed out", (f"{demonstration.inventory}/sign-in",)),
        ),
    )


async def wait_for_frame(page: Page) -> None:
    await page.frame_locator("iframe").first.locator("h1").first.wait_for(timeout=15_000)
    for frame in page.frames:
        await frame.wait_for_load_state()


async def pay_cart(page: Page) -> None:
    """Buy one of the first product."""
    await page.locator("#cart [data-step='1']").first.click()
    await submit(page.locator("#cart button[type=submit]").last)
    await page.wait_for_load_state()
