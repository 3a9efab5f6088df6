"""Visitors in Chromium register on the form, in a frame of another site and on a page of its own."""

import contextlib
import re
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Frame, Page, expect

from holdfast.accounts.stopped_mails import mailboxes
from holdfast.events.registrations.links import own_url
from holdfast.events.settings import Settings
from holdfast.kit.operations.admission import MIN_IN_PROGRESS
from tests.browser.looking import LOOKS, open_context, too_wide, violations, with_and_without_scripts
from tests.browser.registering import DOCUMENT, FormStage, Watch, serve_stage
from tests.helpers.events_service import eventually


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings, capacity=1, waitinglist_capacity=2) as stage:
        yield stage


@with_and_without_scripts
async def test_the_outcome_in_a_frame_of_another_site_changes_from_waiting_to_seated(
    chromium: Browser, stage: FormStage, scripts: bool
) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    watch = Watch(context)
    page = await context.new_page()
    await page.goto(stage.pasted)
    frame = page.frame_locator("iframe")

    await frame.get_by_label("E-mail address").fill("ann@example.com")
    await frame.get_by_label("Name").fill("Ann")
    await frame.get_by_role("button", name="Register").click()
    status = frame.get_by_role("status")
    await expect(status.get_by_role("heading")).to_have_text("We have received your registration.")
    await stage.service.settle()
    await expect(status.get_by_role("heading")).to_have_text("You have a seat.", timeout=20_000)

    assert page.url == stage.pasted
    assert await context.cookies() == []
    assert watch.failures == []
    assert watch.hosts == {stage.base_url.split("/")[2], stage.pasted.split("/")[2]}
    assert await stage.service.run_sql("select name from registrations") == [("Ann",)]


async def embedded_frame(page: Page) -> Frame:
    """What is in the frame of a page."""
    await expect(page.locator("iframe")).to_be_visible()
    frame = page.frames[1]
    await frame.wait_for_load_state()
    return frame


@pytest.mark.parametrize("width", [320, 900])
async def test_a_frame_that_follows_its_content_needs_no_scroll_bar(
    chromium: Browser, stage: FormStage, width: int
) -> None:
    page = await (await chromium.new_context(viewport={"width": width, "height": 900})).new_page()
    await page.goto(stage.fitted)
    frame = await embedded_frame(page)
    fits = "innerHeight === Math.ceil(document.documentElement.getBoundingClientRect().height)"

    await eventually(lambda: frame.evaluate(fits))
    high = await frame.evaluate("innerHeight")
    await frame.get_by_role("button", name="Register").click()
    await expect(frame.locator("#email-error")).to_be_visible()
    await eventually(lambda: frame.evaluate(fits))

    assert await frame.evaluate("innerHeight") > high
    assert await frame.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert await frame.evaluate("document.activeElement.id") == "email"


async def test_the_form_of_registration_can_be_used_by_keyboard_alone(chromium: Browser, stage: FormStage) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(stage.pasted)
    frame = await embedded_frame(page)

    async def reach(id: str) -> None:
        for _ in range(6):
            await page.keyboard.press("Tab")
            if await frame.evaluate("document.activeElement.id") == id:
                return
        raise AssertionError(f"{id} is not reached")

    await reach("email")
    await page.keyboard.type("ann@example.com")
    await reach("name")
    await page.keyboard.type("Ann")
    await page.keyboard.press("Tab")  # the button, and not the field that people do not see
    await page.keyboard.press("Enter")

    await expect(page.frame_locator("iframe").get_by_role("status")).to_contain_text("We have received")


async def test_links_to_the_event_leave_the_frame(chromium: Browser, stage: FormStage) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(stage.pasted)

    await page.frame_locator("iframe").get_by_role("link", name="Life drawing").click()

    await expect(page).to_have_url(stage.event["public_url"])


async def test_the_form_of_registration_on_the_page_of_the_event_leads_to_an_outcome_without_a_frame(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    watch = Watch(context)
    page = await context.new_page()
    await page.goto(stage.event["public_url"])

    await page.get_by_label("E-mail address").fill("nonsense")
    await page.get_by_role("button", name="Register").click()
    await expect(page.locator("#email-error")).to_be_visible()
    await expect(page.get_by_label("E-mail address")).to_be_focused()
    await page.get_by_label("E-mail address").fill("ann@example.com")
    await page.get_by_role("button", name="Register").click()
    await stage.service.settle()
    await expect(page.get_by_role("status")).to_contain_text("You have a seat.", timeout=20_000)

    assert [failure for failure in watch.failures if "422" not in failure] == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


class LookingVisitor:
    """A visitor who looks at pages in one scheme, width and language."""

    def __init__(self, stage: FormStage, page: Page, lang: str) -> None:
        self.stage = stage
        self.page = page
        self.lang = lang

    async def check_page(self, address: str, state: str) -> None:
        """Open a page, and check it."""
        await self.page.goto(f"{address}?lang={self.lang}")
        await self.fits(state)

    async def fits(self, state: str) -> None:
        """Check the page: it is in this state, fits the screen, and is accessible."""
        await expect(self.page.locator(f"main[data-state={state}]")).to_be_visible()
        assert await too_wide(self.page) == []
        assert (await violations(self.page)) == []

    async def send(self, email: str) -> None:
        """Fill in the form, and send it."""
        await self.page.goto(f"{self.stage.form}?lang={self.lang}")
        await self.page.locator("#email").fill(email)
        await self.page.locator("#email").press("Enter")


@pytest_asyncio.fixture(loop_scope="session", params=LOOKS, ids=str)
async def look(request: pytest.FixtureRequest, chromium: Browser, stage: FormStage) -> AsyncIterator[LookingVisitor]:
    scheme, width, lang = request.param
    context = await open_context(chromium, scheme, width, lang)
    watch = Watch(context)
    event = {"title": "W" * 60, "location_name": "x" * 100, "address": "Street 1"}
    await stage.ada.patch(f"/api/events/{stage.event['id']}", {"event": event})
    yield LookingVisitor(stage, await context.new_page(), lang)
    # Chromium reports the status of a refusal as an error of the page.
    assert [failure for failure in watch.failures if "the server responded with a status of 4" not in failure] == []
    assert watch.hosts == {stage.base_url.split("/")[2]}


async def test_every_state_of_the_form_is_accessible_and_fits_small_screens(
    stage: FormStage, look: LookingVisitor
) -> None:
    service = stage.service
    await look.check_page(stage.form, "open")
    await look.send("nonsense")
    await expect(look.page.locator("#email-error")).to_be_visible()
    await look.fits("open")
    await look.send("ann@example.com")
    await look.fits("pending")
    await service.settle()
    await look.fits("registered")
    await look.check_page(stage.form, "waiting_list")
    await look.send("ben@example.com")
    await look.page.wait_for_url("**/outcome/**")
    await service.settle()
    await look.fits("waitlisted")
    await service.run_sql("update registrations set received_at = received_at - interval '1 hour'")
    await look.send("ann@example.com")
    await look.fits("known")
    await service.run_sql("update events set waitinglist_capacity = 1")
    await look.check_page(stage.form, "full")
    await service.run_sql("update events set cancelled_at = now()")
    await look.check_page(stage.form, "cancelled")


async def test_the_pages_of_the_own_registration_are_accessible_and_fit_small_screens(
    stage: FormStage, look: LookingVisitor
) -> None:
    for email in ("ann@example.com", "ben@example.com"):
        await stage.ada.register(stage.event["id"], email=email)
    await stage.service.settle()
    people = await stage.service.run_sql(
        "select public_id, arrival from registrations join users on users.id = user_id order by arrival"
    )
    resources = stage.service.database.resources
    ann, ben = (own_url(resources.settings, resources.secret, stage.event["id"], *person) for person in people)

    await look.check_page(ann, "registered")
    await look.check_page(ben, "waitlisted")
    await look.check_page(f"{ann}/unsubscribe", "subscribed")
    await look.page.locator("button").click()
    await look.fits("unsubscribed")
    stop = mailboxes.path(resources.secret, mailboxes.digest("ann@example.com"))
    await look.check_page(f"{stage.base_url}{stop}", "sent")
    for after in ("stopped", "sent"):
        await look.page.locator("button").click()
        await look.fits(after)
    await look.check_page(ann, "registered")
    await look.check_page(f"{ann}/cancel", "asking")
    await look.page.locator("button").click()
    await look.fits("registered")
    await look.page.locator("#undo").click()
    await look.fits("registered")
    await look.check_page(f"{ann}/cancel", "asking")
    await look.page.locator("button").click()
    await stage.service.complete_cancellations()
    await look.check_page(ann, "own_cancellation")
    await look.check_page(ben, "registered")
    await stage.service.run_sql("update events set cancellation_hours = 8760")
    await look.check_page(ben, "registered")
    await stage.service.run_sql("update events set cancelled_at = now()")
    await look.check_page(ben, "registered")


@pytest.mark.parametrize("lacks", ["", "allow-same-origin"], ids=["with all it needs", "without its origin"])
async def test_in_a_sandbox_the_form_works_with_the_rights_that_the_document_names(
    chromium: Browser, stage: FormStage, lacks: str
) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(stage.pasted)
    rights = [
        permission
        for permission in re.findall(r"`(allow-[a-z-]+)`", DOCUMENT.read_text(encoding="utf-8"))
        if permission != lacks
    ]
    await page.evaluate(
        "rights => { const frame = document.querySelector('iframe').cloneNode();"
        "frame.sandbox = rights; document.querySelector('iframe').replaceWith(frame) }",
        " ".join(rights),
    )
    frame = page.frame_locator("iframe")

    await frame.get_by_label("E-mail address").fill("ann@example.com")
    await frame.get_by_role("button", name="Register").click()

    if lacks:
        await expect(frame.get_by_role("heading")).to_have_text("That was not sent from this site.")
    else:
        await expect(frame.get_by_role("status")).to_contain_text("We have received")


async def test_a_form_that_is_refused_under_overload_is_sent_again_by_itself_and_registers_once(
    chromium: Browser, stage: FormStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await (await chromium.new_context()).new_page()
    await page.goto(stage.form)
    await page.get_by_label("E-mail address").fill("ann@example.com")
    admission = stage.service.runner.admission

    with contextlib.ExitStack() as works, monkeypatch.context() as patch:
        for _ in range(MIN_IN_PROGRESS):
            works.enter_context(admission.work())
        patch.setattr(admission, "now", lambda: time.monotonic() + 60)
        await page.get_by_role("button", name="Register").click()
        await expect(page.get_by_role("alert")).to_contain_text("it sends the form again by itself")
        await expect(page.get_by_text("Times tried:")).to_have_text("Times tried: 2")
        assert await stage.service.run_sql("select count(*) from registrations") == [(0,)]
        assert await violations(page) == []

    await expect(page.get_by_role("status").get_by_role("heading")).to_have_text("We have received your registration.")
    assert await stage.service.run_sql("select count(*) from registrations") == [(1,)]
