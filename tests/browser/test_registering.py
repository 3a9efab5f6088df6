"""Two people register in Chromium on a form in another site; one changes her mind, and the other gets her seat."""

import re
from collections.abc import Callable, Coroutine
from typing import Any

from playwright.async_api import Browser, FrameLocator, Page, expect

from holdfast.events.log import sealing
from holdfast.events.mails import sending
from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from tests.browser.registering import Stage, Watch, staged
from tests.kit.background_loops import at_work
from tests.smtp import Server, mail_server
from tests.support import eventually


async def fill_in(page: Page, stage: Stage, email: str) -> FrameLocator:
    """Register on the form in the other site. Returns the frame."""
    await page.goto(stage.fitted)
    frame = page.frame_locator("iframe")
    await frame.get_by_label("E-mail address").fill(email)
    await frame.get_by_label("E-mail address").press("Enter")
    return frame


async def mail(server: Server, email: str, subject: str) -> str:
    """The text of a mail, once it has arrived."""

    def texts() -> list[str]:
        return [
            str(body.get_content())
            for received in server.received
            if received.recipient == email and str(received.mail["Subject"]).startswith(subject)
            if (body := received.mail.get_body(("plain",)))
        ]

    await eventually(_soon(texts), 30)
    [text] = texts()
    return text


def _soon(find: Callable[[], object]) -> Callable[[], Coroutine[Any, Any, object]]:
    async def condition() -> object:
        return find()

    return condition


def link(text: str) -> str:
    [url] = re.findall(r"http\S+/registrations/\S+", text)
    return url


async def test_a_seat_that_is_handed_back_by_the_link_in_a_mail_goes_to_the_next_who_gets_a_mail_too(
    chromium: Browser, settings: Settings
) -> None:
    with mail_server() as server:
        async with staged(
            settings.model_copy(update=server.settings), capacity=1, waitinglist_capacity=5, cancellation_hours=24
        ) as stage:
            contexts = [await chromium.new_context() for _ in range(2)]
            watches = [Watch(context) for context in contexts]
            ann, ben = [await context.new_page() for context in contexts]
            database = stage.service.database

            frame = await fill_in(ann, stage, "ann@example.com")
            outcome = frame.get_by_role("status").get_by_role("heading")
            await expect(outcome).to_have_text("We have received your registration.")
            async with at_work(settlement.LOOP.run(database), sealing.LOOP.run(database), sending.run(database)):
                await expect(outcome).to_have_text("You have a seat.", timeout=20_000)
                assert ann.url == stage.fitted

                frame = await fill_in(ben, stage, "ben@example.com")
                outcome = frame.get_by_role("status").get_by_role("heading")
                await expect(outcome).to_have_text("You are on the waiting list, place 1 of 1.", timeout=20_000)
                await mail(server, "ben@example.com", "You are on the waiting list")

                await ann.goto(link(await mail(server, "ann@example.com", "You have a seat")))
                await expect(ann.get_by_role("heading", level=2)).to_have_text("You have a seat.")
                await ann.get_by_role("link", name="Pass my seat on").click()
                await ann.get_by_role("button", name="Pass it on").click()
                await expect(ann.get_by_role("heading", level=2)).to_have_text("You are passing your seat on.")
                await expect(ann.locator(".left")).to_have_text(re.compile("^0:[0-3][0-9]$"))
                await stage.service.cancel_due()
                thanks = "Somebody who waited has it now. Thank you."
                await expect(ann.get_by_role("heading", level=2)).to_have_text(thanks)

                await ben.goto(link(await mail(server, "ben@example.com", "You have a seat now")))
                await expect(ben.get_by_role("heading", level=2)).to_have_text("You have a seat.")
                await mail(server, "ann@example.com", "Your registration was cancelled")

            [registration] = (await stage.ada.get("/api/registrations")).json()["data"]
            assert (registration["email"], registration["status"]) == ("ben@example.com", "registered")
            failures = [[failure for failure in watch.failures if "410 (Gone)" not in failure] for watch in watches]
            assert failures == [[], []]
            assert [await context.cookies() for context in contexts] == [[], []]
