"""Demo payments in Chromium: an account is finished, a session is paid, and each page is accessible."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.demo.stripe.processor import run_processor

PAYMENTS = {"en": "Payments", "de": "Zahlungen"}
DECLINED = {"en": "Your card was declined.", "de": "Ihre Karte wurde abgelehnt."}
FEE = {"en": "€2.50 is the fee", "de": "davon 2,50\N{NO-BREAK SPACE}€ Gebühr"}
PAID = {"en": "This is paid.", "de": "Das ist bezahlt."}


@parametrize_looks
async def test_an_account_is_finished_and_a_session_is_paid_by_keyboard(
    chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    async with run_processor() as scene:
        home = scene.processor.address
        account = await scene.account(done=False)
        urls = {"refresh_url": f"{home}/again", "return_url": f"{home}/"}
        use_case: Any = {"type": "account_onboarding", "account_onboarding": urls}
        parameters: Any = {"account": account, "use_case": use_case}
        link = await scene.do(scene.client.v2.core.account_links.create, parameters)
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)

        await page.goto(link.url)
        assert await violations(page) == []
        assert await too_wide(page) == []
        await page.locator("main form button").click()
        await expect(page.locator("h1")).to_have_text(PAYMENTS[language])

        session = await scene.session(account, success_url=f"{home}/", cancel_url=f"{home}/again")
        assert session.url is not None
        await page.goto(session.url)
        assert await violations(page) == []
        assert await too_wide(page) == []
        await page.locator("#card").fill("4000 0000 0000 0002")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text(DECLINED[language])
        assert await violations(page) == []
        await page.locator("#card").fill("4242 4242 4242 4242")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(PAYMENTS[language])
        await expect(page.get_by_text(FEE[language])).to_be_visible()
        assert await violations(page) == []
        assert await too_wide(page) == []

        await page.goto(f"{home}/pay/{session.id}")
        await expect(page.locator("h1")).to_have_text(PAID[language])
        assert await violations(page) == []
        assert faults == []
        await context.close()
