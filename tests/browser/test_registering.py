"""In Chromium two people register on a form in another site, and one changes her mind; a third mistypes the address."""

import re

import pytest
from playwright.async_api import Browser, expect

from holdfast.events.log import sealing
from holdfast.events.mails import sending
from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from tests.browser.looking import SMALL, violations
from tests.browser.registering import Watch, register_in_frame, registration_link, serve_stage, wait_for_mail
from tests.helpers.background_loops import run_in_background
from tests.helpers.smtp import mail_server


async def test_a_seat_cancelled_by_the_link_in_a_mail_goes_to_the_next_person_who_gets_a_mail(
    chromium: Browser, settings: Settings
) -> None:
    with mail_server() as server:
        async with serve_stage(
            settings.model_copy(update=server.settings), capacity=1, waitinglist_capacity=5, cancellation_hours=24
        ) as stage:
            contexts = [await chromium.new_context() for _ in range(2)]
            watches = [Watch(context) for context in contexts]
            ann, ben = [await context.new_page() for context in contexts]
            database = stage.service.database

            frame = await register_in_frame(ann, stage, "ann@example.com")
            outcome = frame.get_by_role("status").get_by_role("heading")
            await expect(outcome).to_have_text("We have received your registration.")
            async with run_in_background(
                settlement.LOOP.run(database), sealing.LOOP.run(database), sending.run(database)
            ):
                await expect(outcome).to_have_text("You have a seat.", timeout=20_000)
                assert ann.url == stage.fitted

                frame = await register_in_frame(ben, stage, "ben@example.com")
                outcome = frame.get_by_role("status").get_by_role("heading")
                await expect(outcome).to_have_text("You are number 1 on the waiting list.", timeout=20_000)
                await wait_for_mail(server, "ben@example.com", "You are on the waiting list")

                await ann.goto(registration_link(await wait_for_mail(server, "ann@example.com", "You have a seat")))
                await expect(ann.get_by_role("heading", level=2)).to_have_text("You have a seat.")
                await ann.get_by_role("link", name="Pass my seat on").click()
                await ann.get_by_role("button", name="Pass my seat on").click()
                await expect(ann.get_by_role("heading", level=2)).to_have_text("You are passing your seat on.")
                await expect(ann.locator(".left")).to_have_text(re.compile("^0:[0-3][0-9]$"))
                await stage.service.complete_cancellations()
                thanks = "Somebody who waited has your seat now. Thank you."
                await expect(ann.get_by_role("heading", level=2)).to_have_text(thanks)

                await ben.goto(registration_link(await wait_for_mail(server, "ben@example.com", "You have a seat now")))
                await expect(ben.get_by_role("heading", level=2)).to_have_text("You have a seat.")
                await wait_for_mail(server, "ann@example.com", "Your registration was cancelled")

            [registration] = (await stage.ada.get("/api/registrations")).json()["data"]
            assert (registration["email"], registration["status"]) == ("ben@example.com", "registered")
            failures = [[failure for failure in watch.failures if "410 (Gone)" not in failure] for watch in watches]
            assert failures == [[], []]
            assert [await context.cookies() for context in contexts] == [[], []]


@pytest.mark.parametrize("framed", [False, True], ids=["on the page of the event", "in another site"])
async def test_a_mistyped_address_is_corrected_on_the_page_after_registering(
    chromium: Browser, settings: Settings, framed: bool
) -> None:
    async with serve_stage(settings) as stage:
        service = stage.service
        context = await chromium.new_context(viewport={"width": SMALL, "height": 800}, reduced_motion="reduce")
        watch = Watch(context)
        page = await context.new_page()
        if framed:
            form_page = await register_in_frame(page, stage, "anm@example.com")
        else:
            await page.goto(stage.event["public_url"])
            await page.get_by_label("E-mail address").fill("anm@example.com")
            await page.get_by_label("E-mail address").press("Enter")
            form_page = page
        await expect(form_page.get_by_role("heading", name="We have received your registration.")).to_be_visible()
        await service.settle()
        await expect(form_page.get_by_role("heading", name="You have a seat.")).to_be_visible(timeout=20_000)

        await form_page.get_by_text("Change it").click()
        await form_page.get_by_label("The right e\N{NON-BREAKING HYPHEN}mail address").fill("ann@")
        await form_page.get_by_role("button", name="Change the address").click()
        await expect(form_page.get_by_text("It should look like ann@example.com.")).to_be_visible()
        faults = [] if framed else await violations(page)
        await form_page.get_by_label("The right e\N{NON-BREAKING HYPHEN}mail address").fill("ann@example.com")
        await form_page.get_by_role("button", name="Change the address").click()

        await expect(form_page.get_by_role("heading", name="You have a seat.")).to_be_visible()
        await expect(form_page.get_by_label("The right e\N{NON-BREAKING HYPHEN}mail address")).to_be_hidden()
        assert faults == []
        [registration] = (await stage.ada.get("/api/registrations")).json()["data"]
        assert (registration["email"], registration["status"]) == ("ann@example.com", "registered")
        # A refused form is answered with 422, which the browser reports.
        assert [failure for failure in watch.failures if "422" not in failure] == []
