"""The theme block on a storefront, in Chromium: the number is live, and the shop's page never suffers from it."""

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.browser.looking import looks, open_context
from tests.browser.shopping import shopping
from tests.databases import scratch_database

IN = {"en": "{} in stock", "de": "{} auf Lager"}
LOW = {"en": "Only {} left", "de": "Nur noch {} verfügbar"}
OUT = {"en": "Sold out", "de": "Ausverkauft"}
BACK = {"en": "Back in stock: {}", "de": "Wieder auf Lager: {}"}

OLD = {"en": r"^{} in stock at \d+:\d\d", "de": r"^{} auf Lager um \d+:\d\d$"}


@looks
async def test_a_visitor_sees_each_sale_at_once_and_the_page_outlives_the_service(
    chromium: Browser, inventory_template: str, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    with scratch_database(inventory_template, "theme") as url:
        async with shopping(url, tmp_path) as stand:
            context = await open_context(chromium, scheme, width, language)
            visit = await stand.visited(context, language)
            page = visit.page
            await visit.expect_text(IN[language].format(50))
            await visit.wait_until_live()

            requests = [*visit.requests]
            await stand.sell(6)
            await visit.expect_text(IN[language].format(44))
            assert visit.requests == requests  # the stream said it, not another question
            await expect(page.locator("[data-variant$='/1006']")).to_have_text(IN[language].format(7))
            await expect(page.locator("[data-variant$='/1012']")).to_have_text(LOW[language].format(3))

            # The keyboard alone chooses another variant.
            while await page.evaluate("document.activeElement.type") != "radio":
                await page.keyboard.press("Tab")
            await page.keyboard.press("ArrowDown")
            await visit.expect_text(IN[language].format(7))
            await page.keyboard.press("ArrowDown")
            await visit.expect_text(LOW[language].format(3))
            await expect(page.get_by_role("status").first).to_have_text(LOW[language].format(3))
            await visit.looks_right()

            await stand.count(5)
            await visit.expect_text(OUT[language])
            await stand.count(24)
            await visit.expect_text(BACK[language].format(2))

            stand.service.kill()
            await expect(visit.line).to_have_text(re.compile(OLD[language].format(2)), timeout=15_000)
            await visit.looks_right()
            await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**variant=1012**")
            await expect(page.get_by_role("button")).to_be_visible()
            await expect(visit.line).to_have_text("")

            await stand.sell(12)
            stand.service.start()
            await visit.expect_text(LOW[language].format(1))
            await visit.wait_until_live()
            await stand.sell(12)
            await visit.expect_text(OUT[language])
            assert visit.faults == []
            await visit.looks_right()
            await context.close()


async def test_a_hidden_page_asks_nothing_and_is_right_again_when_it_is_seen(
    chromium: Browser, inventory_template: str, tmp_path: Path
) -> None:
    with scratch_database(inventory_template, "theme_hidden") as url:
        async with shopping(url, tmp_path) as stand:
            context = await open_context(chromium, "light", 1280, "en")
            visit = await stand.visited(context, clock=True)
            await visit.expect_text("50 in stock")
            await visit.wait_until_live()

            await visit.set_hidden(hidden=True)
            visit.requests.clear()
            await stand.sell(1)
            # An hour goes by: no timer is left that would ask.
            await visit.page.clock.run_for(3_600_000)
            assert visit.requests == []
            await visit.expect_text("50 in stock")

            await visit.set_hidden(hidden=False)
            await visit.expect_text("49 in stock")
            await visit.wait_until_live()
            assert [address.partition("?")[0].rpartition("/")[2] for address in visit.requests] == [
                "availability",
                "stream",
            ]
            assert visit.faults == []
            await context.close()
