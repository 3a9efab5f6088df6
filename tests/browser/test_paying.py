"""Paying for a seat in Chromium, from a form in another site: in time, too late, and with a refund."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.accounts import sessions
from holdfast.events.log import sealing
from holdfast.events.mails import sending
from holdfast.events.payments import part as payments
from holdfast.events.registrations.links import own_url
from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from holdfast.kit.background import row_work
from holdfast_demo.stripe.processor import StripeDouble
from holdfast_demo.stripe.webhooks import Endpoint
from tests.browser.link_following import open_live
from tests.browser.looking import open_context, parametrize_looks, session_cookie, too_wide, violations
from tests.browser.registering import FormStage, Watch, register_in_frame, registration_link, serve_stage, wait_for_mail
from tests.helpers.background_loops import run_in_background
from tests.helpers.people import handle_of
from tests.helpers.serving import bind_port, serve_app
from tests.helpers.smtp import MailServer, mail_server

SECRET = "whsec_of_the_tests"


@contextlib.asynccontextmanager
async def open_for_payment(settings: Settings, **fields: Any) -> AsyncGenerator[tuple[FormStage, StripeDouble]]:
    """A paid event whose organizer is paid out, its form in another site, and the payment processor, all at work."""
    port = bind_port()
    address = port.url
    processor = StripeDouble(address)
    paid = settings.model_copy(
        update={"stripe_key": processor.key, "stripe_api": address, "stripe_webhook_secret": SECRET}
    )
    async with (
        serve_app(processor.app, port),
        serve_stage(paid, pricing_mode="fixed", price=1200, currency="EUR", **fields) as stage,
    ):
        processor.webhooks.endpoints.append(Endpoint(f"{stage.base_url}/stripe/webhook", SECRET))
        database = stage.service.database
        async with run_in_background(
            settlement.LOOP.run(database),
            sealing.LOOP.run(database),
            sending.run(database),
            *(row_work.run(database, work) for work in payments.rows(database)),
        ):
            account = (await stage.ada.post("/api/stripe/onboarding_link")).json()["data"]["stripe_account_id"]
            processor.finish(account)
            await stage.ada.post("/api/stripe/onboarding_link")
            await stage.service.wait_for_notices()
            yield stage, processor
        processor.check()
    processor.close()


async def pay(page: Page) -> None:
    """Pay on the page of the processor."""
    await page.locator("#card").fill("4242 4242 4242 4242")
    await page.locator("#card").press("Enter")


async def signed_in(chromium: Browser, stage: FormStage) -> BrowserContext:
    """The browser of the organizer, who has signed in by a link."""
    context = await chromium.new_context()
    await stage.service.run_sql("update users set proved_at = now() where id = %(id)s", id=stage.ada.id)
    secret = await stage.service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "link", "Chromium"))
    await context.add_cookies([session_cookie(stage.base_url, secret)])
    return context


async def test_the_console_leads_to_the_processor_and_back(chromium: Browser, settings: Settings) -> None:
    async with open_for_payment(settings) as (stage, processor):
        context = await signed_in(chromium, stage)
        watch = Watch(context)
        page = await context.new_page()

        await page.goto(f"{stage.base_url}/console/payouts")
        await page.get_by_role("button", name="Update your details").click()
        await expect(page.get_by_role("button", name="Finish the account")).to_be_visible()
        assert page.url.startswith(processor.address)
        await page.get_by_role("button", name="Finish the account").click()

        await expect(page.get_by_text("People can pay for your events.")).to_be_visible()
        assert page.url == f"{stage.base_url}/console/payouts"
        assert watch.failures == []


async def test_a_seat_is_paid_from_a_form_in_another_site_and_the_money_goes_back_when_it_is_cancelled(
    chromium: Browser, settings: Settings
) -> None:
    with mail_server() as server:
        mailed = settings.model_copy(update=server.settings)
        async with open_for_payment(mailed, capacity=1, waitinglist_capacity=5) as (stage, processor):
            context = await chromium.new_context()
            watch = Watch(context)
            page = await context.new_page()

            frame = await register_in_frame(page, stage, "ann@example.com")
            await expect(frame.get_by_role("heading", name="A seat is held for you until")).to_be_visible(
                timeout=20_000
            )
            await expect(frame.get_by_text("Time left: 14:")).to_be_visible(timeout=20_000)
            async with context.expect_page() as opened:
                await frame.get_by_role("link", name="Pay €12.00").click()
            tab = await opened.value
            await expect(tab.get_by_label("Card number")).to_be_visible()
            assert tab.url.startswith(processor.address)
            # Another browser shows the organizer what happens.
            organizer_context = await signed_in(chromium, stage)
            console = f"{stage.base_url}/console/events/{stage.event['id']}"
            person = f"{console}/registrations/{await handle_of(stage.service, 'ann@example.com')}/payments"
            of_event = await open_live(organizer_context, f"{console}/payments")
            of_person = await open_live(organizer_context, person)
            await expect(of_person.locator("#live form")).to_have_count(0)
            await pay(tab)
            await expect(of_event.locator("#live .tile").nth(1)).to_contain_text("€12.00 in 1 payment")
            await expect(of_person.locator("#live form")).to_have_count(1)

            await expect(tab.get_by_role("heading", name="You have a seat.")).to_be_visible(timeout=20_000)
            assert tab.url.startswith(stage.base_url)
            # The site around the form is where it was, and shows the seat too.
            await expect(frame.get_by_role("heading", name="You have a seat.")).to_be_visible(timeout=20_000)
            assert page.url == stage.fitted
            await page.goto(tab.url)
            await expect(page.get_by_text("You have paid €12.00.")).to_be_visible()
            text = await wait_for_mail(server, "ann@example.com", "You have a seat")
            assert "Paid: €12.00" in text

            await page.goto(registration_link(text))
            await page.get_by_role("link", name="Cancel my registration").click()
            await expect(page.get_by_text("If you cancel now, you get €12.00 back.")).to_be_visible()
            await page.get_by_role("button", name="Cancel my registration").click()
            await expect(page.get_by_role("heading", level=2)).to_have_text("Your registration is being cancelled.")
            await stage.service.complete_cancellations()
            await expect(page.get_by_role("heading", level=2)).to_have_text("Your seat is free for others now.")
            await expect(of_event.locator("#live .tile").nth(1)).to_contain_text("€12.00 refunded")
            await expect(tab.locator("main[data-state=gone]")).to_be_visible()
            await wait_for_mail(server, "ann@example.com", "You get €12.00 back")
            assert [failure for failure in watch.failures if "410 (Gone)" not in failure] == []
            await page.goto(processor.address)
            await expect(page.get_by_text("€0.00").first).to_be_visible()


@pytest.mark.parametrize(
    ("rights", "name"),
    [
        ("allow-popups allow-popups-to-escape-sandbox", "Pay €12.00"),
        ("allow-top-navigation-by-user-activation", "Pay in this window"),
    ],
)
async def test_a_frame_that_may_do_only_one_thing_still_leads_to_the_payment(
    chromium: Browser, settings: Settings, rights: str, name: str
) -> None:
    async with open_for_payment(settings, capacity=1) as (stage, processor):
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(stage.fitted)
        await page.evaluate(
            """(rights) => { const frame = document.querySelector("iframe").cloneNode();
                             frame.sandbox = rights; document.querySelector("iframe").replaceWith(frame); }""",
            f"allow-forms allow-scripts allow-same-origin {rights}",
        )
        frame = page.frame_locator("iframe")
        await frame.get_by_label("E-mail address").fill("ann@example.com")
        await frame.get_by_label("E-mail address").press("Enter")
        button = frame.get_by_role("link", name=name)
        await expect(button).to_be_visible(timeout=20_000)

        if "popups" in rights:
            async with context.expect_page() as opened:
                await button.click()
            paying = await opened.value
        else:
            await button.click()
            paying = page

        await expect(paying.get_by_label("Card number")).to_be_visible()
        assert paying.url.startswith(processor.address)
        await pay(paying)
        await expect(paying.get_by_role("heading", name="You have a seat.")).to_be_visible(timeout=20_000)


async def test_a_seat_that_is_paid_too_late_goes_to_the_next_person_who_gets_a_mail_to_pay(
    chromium: Browser, settings: Settings
) -> None:
    with mail_server() as server:
        mailed = settings.model_copy(update=server.settings)
        async with open_for_payment(mailed, capacity=1, waitinglist_capacity=5) as (stage, _):
            ann, ben = [await (await chromium.new_context()).new_page() for _ in range(2)]
            frame = await register_in_frame(ann, stage, "ann@example.com")
            await expect(frame.get_by_role("link", name="Pay €12.00")).to_be_visible(timeout=20_000)
            waiting = await register_in_frame(ben, stage, "ben@example.com")
            await expect(waiting.get_by_role("heading", name="on the waiting list")).to_be_visible(timeout=20_000)

            await stage.service.run_sql("update payments set ends_at = now(), due_at = now()")

            late = frame.get_by_role("heading", name="The seat was not paid in time.")
            await expect(late).to_be_visible(timeout=20_000)
            await ben.goto(registration_link(await _wait_for_payment_mail(server)))
            await expect(ben.get_by_text("Time left: 11:59:")).to_be_visible(timeout=20_000)
            await ben.get_by_role("link", name="Pay €12.00").click()
            await pay(ben)
            await expect(ben.get_by_role("heading", name="You have a seat.")).to_be_visible(timeout=20_000)


async def test_the_button_to_pay_leaves_an_open_page_when_the_time_is_over(
    chromium: Browser, settings: Settings
) -> None:
    async with open_for_payment(settings, capacity=1) as (stage, _):
        page = await (await chromium.new_context()).new_page()
        frame = await register_in_frame(page, stage, "ann@example.com")
        button = page.get_by_role("link", name="Pay €12.00")
        await expect(frame.get_by_role("link", name="Pay €12.00")).to_be_visible(timeout=20_000)
        resources = stage.service.database.resources
        [named] = await stage.service.run_sql(
            "select event_id, public_id, arrival from registrations join users on users.id = user_id"
        )
        await stage.service.run_sql("update payments set ends_at = now() + interval '4 seconds'")
        await stage.service.run_sql("update registrations set held_until = now() + interval '4 seconds'")

        await page.goto(own_url(resources.settings, resources.secret, *named))  # pyright: ignore[reportArgumentType] - a row
        await expect(button).to_be_visible()

        await expect(page.get_by_role("heading", name="Your time to pay is over.")).to_be_visible(timeout=20_000)
        await expect(button).to_have_count(0)


async def _wait_for_payment_mail(server: MailServer) -> str:
    text = await wait_for_mail(server, "ben@example.com", "Please pay €12.00 for your seat")
    assert "Pay €12.00 before " in text
    return text


@parametrize_looks
async def test_every_state_of_paying_is_accessible_and_fits(
    chromium: Browser, settings: Settings, scheme: Any, width: int, language: str
) -> None:
    async with open_for_payment(settings, title="W" * 90, capacity=1) as (stage, _):
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()

        async def look() -> None:
            assert await violations(page) == []
            assert await too_wide(page) == []

        await page.goto(stage.form)
        await look()
        await page.locator("#email").fill("ann@example.com")
        await page.locator("#email").press("Enter")
        await expect(page.locator("a[target=_blank].button")).to_be_visible(timeout=20_000)
        assert await page.evaluate("[0, 65, 3599, 43145].map(clock)") == ["0:00", "1:05", "59:59", "11:59:05"]
        await look()
        await page.goto(await page.locator("a[target=_blank].button").get_attribute("href") or "")
        await pay(page)
        await expect(page.locator("main[data-state=registered]")).to_be_visible(timeout=20_000)
        await look()
        await context.close()
