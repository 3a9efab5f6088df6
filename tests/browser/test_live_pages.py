"""Live pages in two browsers: a change made in one appears in the other over a stream."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.events.settings import Settings
from tests.browser.link_following import open_live
from tests.browser.looking import submit
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.check_in.check_in_scene import link_of
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client, eventually
from tests.helpers.people import handle_of, sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings, capacity=3, waitinglist_capacity=2) as stage:
        yield stage


async def organizer(stage: FormStage, *contexts: BrowserContext) -> Client:
    """An organizer who is signed in in these browsers."""
    ada, browser = await sign_in_organizer(stage.service)
    for name, value in browser.http.cookies.items():
        for context in contexts:
            await context.add_cookies([{"name": name, "value": value, "url": stage.base_url}])
    return ada


def fetches(page: Page) -> list[str]:
    """The addresses that scripts of a page fetch from now on."""
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url) if request.resource_type == "fetch" else None)
    return urls


async def register(chromium: Browser, stage: FormStage, event: dict[str, Any], email: str) -> Page:
    """A visitor in another browser registers on the page of an event. Returns the page that says how it went."""
    page = await (await chromium.new_context()).new_page()
    await page.goto(event["public_url"])
    await page.get_by_label("E-mail address").fill(email)
    async with page.expect_navigation():
        await page.get_by_label("E-mail address").press("Enter")
    await stage.service.settle()
    return page


async def test_a_registration_and_an_edit_appear_on_the_pages_of_the_event_and_its_organizer(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context(reduced_motion="no-preference")
    watch = Watch(context)
    page = await open_live(context, stage.event["public_url"], "/stream")
    organizer_page = await open_live(context, f"{stage.base_url}/organizers/{stage.ada.slug}", "/stream")
    loads = fetches(page)
    left = page.locator("[data-count=left]")
    await expect(left).to_have_text("3 seats left")

    await register(chromium, stage, stage.event, "ann@example.com")

    await expect(left).to_have_text("2 seats left")
    await expect(left).to_contain_class("changed")
    await expect(left).not_to_contain_class("changed")
    await register(chromium, stage, stage.event, "bob@example.com")
    await expect(left).to_have_text("1 seat left")
    await expect(organizer_page.locator(f"[data-count=left-{stage.event['id']}]")).to_have_text("1 seat left")
    assert loads == []

    await stage.ada.patch(f"/api/events/{stage.event['id']}", {"event": {"title": "Late pottery"}})

    await expect(page.locator("h1")).to_have_text("Late pottery")
    await expect(organizer_page.get_by_role("link", name="Late pottery")).to_be_visible()

    # A visitor who gets an old page from a cache sees the change when the stream of the page begins.
    old_page = (await stage.service.http.get(stage.event["public_url"])).text
    await stage.ada.patch(f"/api/events/{stage.event['id']}", {"event": {"title": "Early pottery"}})
    await context.route(stage.event["public_url"], lambda route: route.fulfill(body=old_page, content_type="text/html"))
    late = await context.new_page()
    await late.goto(stage.event["public_url"])
    await expect(late.locator("h1")).to_have_text("Early pottery")
    assert watch.failures == []


async def test_a_live_page_flashes_nothing_for_visitors_who_want_no_motion(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context(reduced_motion="reduce", locale="de-DE")
    page = await open_live(context, stage.event["public_url"], "/stream")
    await page.evaluate(
        """() => {
          window.flashes = 0;
          new MutationObserver((changes) => { window.flashes += changes.length; })
            .observe(document.body, { subtree: true, attributeFilter: ["class"] });
        }"""
    )

    await register(chromium, stage, stage.event, "ann@example.com")

    await expect(page.locator("[data-count=left]")).to_have_text("Noch 2 Plätze frei")
    assert await page.evaluate("window.flashes") == 0


async def test_a_form_that_is_being_filled_in_stays_and_says_that_the_last_seat_has_gone(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.event["public_url"], "/stream")
    await page.get_by_label("E-mail address").fill("zoe@example.com")

    await sign_up(stage.service, stage.event, "ann", "bob", "cleo")

    await expect(page.get_by_role("button", name="Join the waiting list")).to_be_visible()
    await expect(page.get_by_text("When a seat becomes free, the next person")).to_be_visible()
    await expect(page.get_by_label("E-mail address")).to_have_value("zoe@example.com")
    await expect(page.get_by_label("E-mail address")).to_be_focused()


async def test_a_form_in_a_frame_closes_when_registration_is_not_possible_any_more(
    chromium: Browser, stage: FormStage
) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.pasted, "/embed/stream")
    frame = page.frame_locator("iframe")
    await expect(frame.get_by_role("button", name="Register")).to_be_visible()

    await sign_up(stage.service, stage.event, *(f"p{number}" for number in range(5)))

    await expect(frame.get_by_text("If a registration is cancelled, you can register here.")).to_be_visible()
    await expect(frame.get_by_role("button")).to_have_count(0)


async def test_a_page_whose_event_is_cancelled_says_so_and_asks_no_more(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    page = await open_live(context, stage.event["public_url"], "/stream")
    loads = fetches(page)

    await stage.ada.delete(f"/api/events/{stage.event['id']}")

    await expect(page.get_by_text("This event is cancelled. It does not take place.")).to_be_visible()
    await eventually(lambda: page.evaluate("hasEnded && !events"))
    assert loads == []


async def test_a_page_without_a_stream_polls(chromium: Browser, settings: Settings) -> None:
    context = await chromium.new_context()
    async with serve_stage(settings.model_copy(update={"streams_per_organizer": 0}), capacity=3) as stage:
        ada = await organizer(stage, context)
        event = await ada.create_event(capacity=3)
        page = await context.new_page()
        async with page.expect_response(lambda response: "/stream" in response.url) as opened:
            await page.goto(f"{stage.base_url}/console/events/{event['id']}/registrations")
        assert (await opened.value).status == 429

        await sign_up(stage.service, event, "ann")

        await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()


async def test_a_registration_appears_in_the_list_of_events(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.locator(f"[data-count=taken-{event['id']}]")).to_have_text("1 of 3 seats taken")
    await ada.create_event(title="Watercolours")
    await expect(page.get_by_role("link", name="Watercolours", exact=True)).to_be_visible()


async def test_a_registration_appears_on_the_console_page_of_the_event(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console/events/{event['id']}", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.locator("[data-count=taken]")).to_have_text("1 of 3 seats taken")


async def test_a_registration_appears_in_the_list_of_registrations(chromium: Browser, stage: FormStage) -> None:
    context = await chromium.new_context()
    ada = await organizer(stage, context)
    event = await ada.create_event(capacity=3)
    page = await open_live(context, f"{stage.base_url}/console/events/{event['id']}/registrations", "/console/stream")

    await register(chromium, stage, event, "ann@example.com")

    await expect(page.get_by_role("link", name="ann@example.com")).to_be_visible()


async def test_a_waiting_person_sees_the_seat_that_another_person_gives_back(
    chromium: Browser, stage: FormStage
) -> None:
    service = stage.service
    event = await stage.ada.create_event(capacity=1, waitinglist_capacity=2)
    await sign_up(service, event, "ann", "bob")
    links = [f"{stage.base_url}/registrations/{await link_of(service, event['id'], name)}" for name in ("ann", "bob")]
    waiting, leaving = [await chromium.new_context() for _ in range(2)]
    watch = Watch(waiting)
    page = await open_live(waiting, links[1])
    outcome = await register(chromium, stage, event, "cleo@example.com")
    async with outcome.expect_response(lambda response: "/stream" in response.url):
        await outcome.reload()
    await expect(outcome.locator("main h2")).to_contain_text("number 2 on the waiting list")

    going = await leaving.new_page()
    await going.goto(f"{links[0]}/cancel")
    await going.locator("main form button").click()
    await going.wait_for_url(links[0])
    await service.complete_cancellations()

    await expect(page.locator("main h2")).to_have_text("You have a seat.")
    await expect(page.locator(".ticket")).to_be_visible()
    await expect(outcome.locator("main h2")).to_contain_text("number 1 on the waiting list")
    assert watch.failures == []


async def test_changes_of_one_organizer_appear_on_the_open_pages_of_another_person(
    chromium: Browser, stage: FormStage
) -> None:
    watching, acting = [await chromium.new_context(reduced_motion="reduce") for _ in range(2)]
    ada = await organizer(stage, watching, acting)
    watch, console = Watch(watching), f"{stage.base_url}/console"
    event, later = await ada.create_event(capacity=3, waitinglist_capacity=2), await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob", "cleo", "dan")
    await stage.service.run_sql("update events set datetime = now() where id = %(id)s", id=event["id"])
    people = f"{console}/events/{event['id']}/registrations"
    ids = {name: await handle_of(stage.service, f"{name}@example.com") for name in ("ann", "bob", "cleo")}

    table = await open_live(watching, people)
    person = await open_live(watching, f"{people}/{ids['ann']}")
    no_shows = await open_live(watching, f"{console}/events/{event['id']}/check-in/no-shows")
    queues = await open_live(watching, f"{console}/queues", "/console/stream/queues")
    mails = await watching.new_page()
    await mails.goto(f"{console}/mails")
    await table.locator(f"[name=p-{ids['bob']}]").check()
    entries = await person.locator(".timeline li").count()
    sent = await mails.locator("#live tbody th").count()
    await expect(no_shows.locator("#live dd").first).to_have_text("3")

    # Two at once are checked in, and one more is removed, while another is chosen here.
    console_page = await acting.new_page()
    await console_page.goto(people)
    for name in ("ann", "cleo"):
        await console_page.locator(f"[name=p-{ids[name]}]").check()
    await submit(console_page.locator("button[name=do][value=in]"))
    await submit(console_page.locator(".question form button"))

    await expect(person.locator(".timeline li")).to_have_count(entries + 1)
    await expect(no_shows.locator("#live dd").first).to_have_text("1")
    await expect(table.locator("tbody td time")).to_have_count(4)
    await expect(table.locator(f"[name=p-{ids['bob']}]")).to_be_checked()
    await console_page.goto(f"{people}/{ids['cleo']}?do=remove")
    await submit(console_page.locator(".question form button"))
    await expect(table.locator("tbody tr")).to_have_count(3)
    await console_page.goto(f"{console}/queues/new?site=")
    await console_page.locator("[name=title]").fill("Spring sale")
    await console_page.locator("[name=target_url]").fill("https://shop.example.com/")
    await submit(console_page.locator("main form button").last)
    await expect(queues.get_by_role("link", name="Spring sale")).to_be_visible()
    await sign_up(stage.service, later, "eve")
    await expect(mails.locator("#live tbody th")).to_have_count(sent + 1)
    assert watch.failures == []
