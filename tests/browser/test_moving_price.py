"""The price that moves: the card, the button and the bar on a phone never say different prices."""

from playwright.async_api import Browser, Page, expect

from holdfast.events.settings import Settings
from tests.browser.link_following import open_live
from tests.browser.registering import MOVING_PRICE, FormStage, prove_organizers, serve_stage, with_payments

WATCH = """
    () => {
      const prices = () => ["#places .price", "#register_bar strong", "#form_button"].map(
        (place) => document.querySelector(place).textContent.match(/€[0-9.]+/)?.[0] ?? "none");
      window.seen = [prices()];
      const look = () => window.seen.push(prices());
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    }
"""


async def change(stage: FormStage, page: Page, price: int, text: str) -> None:
    await stage.service.run_sql("update events set current_price = %(price)s", price=price)
    await expect(page.locator("#register_bar strong")).to_have_text(text)


async def test_the_card_the_button_and_the_bar_always_say_the_same_price(chromium: Browser, settings: Settings) -> None:
    async with serve_stage(with_payments(settings), capacity=8, **MOVING_PRICE) as stage:
        await prove_organizers(stage)
        context = await chromium.new_context(locale="en-GB", viewport={"width": 390, "height": 844})
        page = await open_live(context, stage.event["public_url"], "/stream")
        await page.evaluate(WATCH)

        await change(stage, page, 1300, "€13.00")
        # What a visitor types stays, and the price beside it moves on.
        await page.get_by_label("E-mail address").fill("ann@example.com")
        await change(stage, page, 1500, "€15.00")
        await change(stage, page, 1200, "€12.00")
        await stage.ada.patch(f"/api/events/{stage.event['id']}", {"event": {"title": "Late pottery"}})
        await expect(page.locator("h1")).to_have_text("Late pottery")
        await page.get_by_label("E-mail address").fill("")
        await change(stage, page, 1999, "€19.99")

        seen: list[list[str]] = await page.evaluate("window.seen")
        assert [prices for prices in seen if len({*prices}) > 1] == []
        assert {"€10.00", "€12.00", "€13.00", "€15.00", "€19.99"} <= {price for prices in seen for price in prices}
