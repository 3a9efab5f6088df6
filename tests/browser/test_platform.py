"""All that `holdfast up` starts, in Chromium: a shop, the app, a pool, a sale, and the numbers that follow."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.async_api import Browser, FrameLocator, Page, expect

from holdfast.kit.pages.language import LANGUAGES
from holdfast_demo.shopify.site import SITE, local_title
from tests.browser.demonstration import Demonstration, run_demonstration
from tests.browser.looking import open_context, parametrize_looks, submit, too_wide, violations
from tests.helpers.events_service import eventually
from tests.helpers.exchange import Event, parse_event

SHOPS = {"en": "bees.myshopify.com", "de": "bienen.myshopify.com"}
"""A shop for each look: what one has installed and sold is there for all."""
OTHER_SHOP = "hives.myshopify.com"
AGENTS = {"en": "Agents", "de": "Agenten"}
PACKS = {"Single": 1, "6-pack": 6, "12-pack": 12}


@pytest.fixture(scope="module")
def demonstration() -> Iterator[Demonstration]:
    # A test that waits for the import asks more often than an agent does.
    often = {"MCP_RATE_LIMIT": "1000"}
    with run_demonstration(**often) as demonstration:
        yield demonstration


@parametrize_looks
async def test_a_6_pack_is_sold_and_storefront_stream_levels_and_history_say_so(
    chromium: Browser, demonstration: Demonstration, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    page, shop = await context.new_page(), SHOPS[language]
    key = await install(page, demonstration, shop, language)
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http,
        Client(streamable_http_client(f"{demonstration.inventory}/mcp", http_client=http)) as agent,
        httpx2.AsyncClient(trust_env=False) as visitor,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await agent.call_tool(tool, arguments)
            assert not answer.is_error, answer
            return answer.structured_content

        async def is_imported() -> bool:
            return (await call("get_sync_status"))["imported"]["status"] == "done"

        async def quantities() -> dict[str, int]:
            return (await visitor.get(f"{demonstration.shops}/{shop}/apps/holdfast/availability")).json()["variants"]

        await eventually(is_imported, 30)
        variants = (await call("search_variants", query="honey"))["variants"]
        gid_of = {variant["title"]: variant["variant_gid"] for variant in variants}
        gids = [gid_of[title] for title in PACKS]
        members = [{"variant_gid": gid_of[title], "units_per_sale": units} for title, units in PACKS.items()]
        pool = (await call("create_pool", name="Honey jars", quantity=50, members=members))["pool"]
        assert await quantities() == dict(zip(gids, (50, 8, 4), strict=True))
        stream_url = (await visitor.get(f"{demonstration.shops}/{shop}/apps/holdfast/availability")).json()[
            "stream_url"
        ]

        async with visitor.stream("GET", stream_url) as stream:
            stream_events = events(stream)
            assert (await anext(stream_events))["data"]["variants"] == dict(zip(gids, (50, 8, 4), strict=True))
            six_pack = local_title(LANGUAGES[language], "6-pack")
            await page.get_by_role("button", name=f"{demo_text(language, 'Sell one')} {six_pack}").click()
            change = await anext(stream_events)

        sold = dict(zip(gids, (44, 7, 3), strict=True))
        assert (change["event"], change["data"]["variants"]) == ("change", sold)
        assert await quantities() == sold

        async def levels_follow() -> bool:
            return await platform_levels(page, language) == ["44", "7", "3"]

        await eventually(levels_follow)
        assert await violations(page) == []
        assert await too_wide(page) == []
        [entry, first] = (await call("get_stock_history", pool_id=pool["id"]))["entries"]
        assert (first["kind"], first["delta"], first["actor"]) == ("set", 50, "agent")
        assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("sale", -6, 44)
        assert (entry["actor"], entry["source"]) == ("platform", "webhook")
        assert entry["reason"] == "Order #1001: 1 of Honey jars · 6-pack sold."
        assert entry["by_variant"] == {gids[1]: 6}
        assert (await call("get_drift"))["drift"] == []
    await context.close()


async def test_a_merchant_links_variants_gives_an_agent_the_key_and_takes_it_back(
    chromium: Browser, demonstration: Demonstration
) -> None:
    context = await open_context(chromium, "light", 1280, "en")
    page = await context.new_page()
    key = await install(page, demonstration, OTHER_SHOP, "en")
    await page.goto(f"{demonstration.shops}/{OTHER_SHOP}/admin/apps/holdfast")
    app = page.frame_locator("iframe")
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http,
        Client(streamable_http_client(f"{demonstration.inventory}/mcp", http_client=http)) as agent,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            result = await agent.call_tool(tool, arguments)
            assert not result.is_error, result
            return result.structured_content

        async def is_imported() -> bool:
            return (await call("get_sync_status"))["imported"]["status"] == "done"

        await eventually(is_imported, 30)
        await app.get_by_role("link", name="Make a pool by hand").click()
        await app.locator("[name=name]").fill("Honey jars")
        await app.locator("[name=quantity]").fill("50")
        await app.get_by_role("button", name="Next: choose packs").click()
        await app.get_by_role("link", name="Add packs").click()
        await app.get_by_label("Part of a title or SKU").fill("honey")
        await app.get_by_role("button", name="Search").click()
        await expect(app.locator("input[type=hidden][name=q]")).to_have_value("honey")
        for title, units in PACKS.items():
            await app.get_by_label(f"Units per sale Honey jars · {title}").fill(str(units))
        await app.get_by_role("button", name="See what would change", exact=True).click()
        outcome = app.locator("section.card").first.locator("tbody tr")
        await expect(outcome).to_have_count(len(PACKS))
        numbers = [await row.locator("td").all_inner_texts() for row in await outcome.all()]
        assert sorted(numbers) == [["not sold", "4"], ["not sold", "50"], ["not sold", "8"]]
        await submit(app.get_by_role("button", name="Add", exact=True))
        await open_pool(page, app)

        [six] = [
            variant["variant_gid"]
            for variant in (await call("search_variants", query="honey"))["variants"]
            if variant["title"] == "6-pack"
        ]
        await call("record_sale", variant_gid=six, quantity=1)
        # The page is not opened again: it follows.
        await expect(app.get_by_text("44 units can be sold", exact=True)).to_be_visible(timeout=20_000)
        await expect(app.locator("#draws tbody tr").first).to_contain_text("6-pack")

        await page.get_by_role("link", name="Agents").click()
        await app.get_by_role("link", name="Replace the key").click()
        await app.get_by_role("button", name="Replace the key").click()
        await expect(app.locator("#key")).not_to_have_text(key)
        assert (await http.post(f"{demonstration.inventory}/mcp", json={})).status_code == 401
    await context.close()


async def open_pool(page: Page, app: FrameLocator) -> None:
    """The page of the pool, from the list of pools."""
    await page.get_by_role("link", name="Pools", exact=True).click()
    await app.get_by_role("link", name="Honey jars", exact=True).click()
    await expect(app.locator("#entries li").first).to_be_visible()


async def install(page: Page, demonstration: Demonstration, shop: str, language: str) -> str:
    """Open a shop at the platform, and install the app by clicking. Returns the key that its page Agents shows."""
    await page.goto(demonstration.shops)
    await page.get_by_text(demo_text(language, "Open another shop")).click()
    await page.locator("#domain").fill(shop)
    await page.locator("#domain").press("Enter")
    await expect(page.get_by_text(shop).first).to_be_visible()
    await page.get_by_role("link", name="Install").click()
    await page.get_by_role("button", name="Install").click()
    app = page.frame_locator("iframe")
    await page.get_by_role("link", name=AGENTS[language]).click()
    assert await violations(page) == []
    assert await too_wide(page) == []
    key = await app.locator("#key").text_content()
    assert key
    await page.get_by_role("link", name=demo_text(language, "Back to the shop")).click()
    await expect(page.get_by_role("link", name=demo_text(language, "See it live"))).to_be_visible()
    return key


def demo_text(language: str, text: str) -> str:
    """A text of the pages of demo shops, in a language."""
    return SITE.texts(LANGUAGES[language]).gettext(text)


async def platform_levels(page: Page, language: str) -> list[str]:
    """What the platform has of single, 6-pack and 12-pack, as its page says."""
    titles = [local_title(LANGUAGES[language], title) for title in PACKS]
    return [await page.locator("li", has_text=title).locator("strong").first.inner_text() for title in titles]


async def events(stream: httpx2.Response) -> AsyncIterator[Event]:
    """What a stream says, without comments."""
    text = ""
    async for part in stream.aiter_text():
        text += part
        while "\n\n" in text:
            head, _, text = text.partition("\n\n")
            event = parse_event(head)
            if "data" in event:
                yield event
