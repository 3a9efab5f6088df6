"""The public pages in Chromium: they are accessible, fit small screens and load nothing from elsewhere."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.page_costs import OBSERVER, SLOW_NETWORK, measure
from tests.browser.visitors import PHONE, SheetVisitor
from tests.helpers.events_service import Client, Service
from tests.helpers.photos import accept_photos, key_of
from tests.helpers.serving import serve_events

BODY = """# What to expect

An evening for **beginners**. More at https://example.com/studio.

* Warm-up
* One long pose

> "The best two hours."

`No photos.`

![A map](https://elsewhere.example/map.png) <img src="https://elsewhere.example/pixel.png">
"""
FIELDS: dict[str, Any] = {
    "title": "Life drawing with a live model " + "W" * 60,
    "body": BODY,
    "location_name": "Studio 4",
    "address": "Uferstraße 8\n13357 Berlin",
    "latitude": 52.55,
    "longitude": 13.37,
    "timezone": "Europe/Berlin",
    "waitinglist_capacity": 2,
}
PRICES = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000, "currency": "EUR"}
SERIES = {"recurrence_frequency": "weeks", "recurrence_interval": 2}


@dataclass
class Town:
    """A service with an organizer whose events are in every state, by what is special about them.

    pages_with_look    the pages of an organizer that has an accent, a logo and words about itself
    """

    address: str
    service: Service
    pages: dict[str, str] = field(default_factory=dict[str, str])
    pages_with_look: dict[str, str] = field(default_factory=dict[str, str])


@pytest_asyncio.fixture(loop_scope="session")
async def town(settings: Settings) -> AsyncIterator[Town]:
    async with serve_events(settings) as service:
        ada = await service.organizer("Studio am Fluss")
        starts = {"start page": f"{service.base_url}/", "for agents": f"{service.base_url}/agents"}
        town = Town(service.base_url, service, {**starts, "organizer": f"{service.base_url}/organizers/{ada.slug}"})
        for name, special in {
            "open": {},
            "series": SERIES,
            "with an end": {"datetime": "2036-11-27T17:00:00Z", "ends_at": "2036-11-28T01:00:00Z"},
            "moving price": {**PRICES, "capacity": 3},
            "full": {"capacity": 1},
            "cancelled": {},
            "past": {},
        }.items():
            event = await ada.create_event(**{**FIELDS, **special})
            town.pages[name] = event["public_url"]
            await _become(service, ada, name, event["id"])
        town.pages["no events"] = f"{service.base_url}/organizers/{(await service.organizer()).slug}"
        stranger = await service.organizer("Sparkasse Nirgendwo", is_proved=False)
        town.pages["unconfirmed organizer"] = f"{service.base_url}/organizers/{stranger.slug}"
        town.pages["unconfirmed"] = (await stranger.create_event(**FIELDS))["public_url"]
        town.pages["nowhere"] = f"{service.base_url}/organizers/nobody"
        town.pages_with_look = await _pages_with_look(service, service.base_url)
        yield town


async def _pages_with_look(service: Service, address: str) -> dict[str, str]:
    bea = await service.organizer("Bea Draws")
    await accept_photos(service, logo := key_of(bea.id, "l"))
    look = "update users set accent = '#806d00', logo_key = %(logo)s, about = 'We draw.' where id = %(id)s"
    await service.run_sql(look, logo=logo, id=bea.id)
    event, past = await bea.create_event(**FIELDS), await bea.create_event(**FIELDS)
    await _become(service, bea, "past", past["id"])
    page = f"{address}/organizers/{bea.slug}"
    return {
        "organizer": page,
        "past events": f"{page}?before=9999999999999999-1",
        "event": event["public_url"],
        "form": f"{address}/events/{event['id']}/embed",
    }


async def _become(service: Service, ada: Client, state: str, id: int) -> None:
    if state in {"full", "moving price"}:
        for name in ("ann", "ben"):
            await ada.register(id, email=f"{name}@example.com")
            await service.settle()
    elif state == "cancelled":
        await ada.delete(f"/api/events/{id}")
    elif state == "past":
        await service.run_sql("update events set datetime = now() - interval '1 hour' where id = %(id)s", id=id)


@dataclass
class Watched:
    """A page, and what went wrong in it."""

    page: Page
    wrong: list[str] = field(default_factory=list[str])


async def open_watched_page(context: BrowserContext, address: str) -> Watched:
    """A new page that notes what is said on its console, and requests to other hosts."""
    watch = Watched(await context.new_page())
    watch.page.on("pageerror", lambda error: watch.wrong.append(str(error)))
    watch.page.on(
        "console", lambda message: watch.wrong.append(message.text) if "status of 404" not in message.text else None
    )
    watch.page.on(
        "request", lambda request: None if request.url.startswith(address) else watch.wrong.append(request.url)
    )
    return watch


@parametrize_looks
async def test_public_pages_are_accessible_fit_and_load_nothing_from_elsewhere(
    chromium: Browser, town: Town, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    watch = await open_watched_page(context, town.address)

    for name, url in (*town.pages.items(), *town.pages_with_look.items()):
        await watch.page.goto(f"{url}{'&' if '?' in url else '?'}lang={language}")
        await expect(watch.page.locator("main")).to_be_visible()
        assert await too_wide(watch.page) == [], name
        assert await violations(watch.page) == [], name
        assert await watch.page.evaluate("document.documentElement.lang") == language

    assert watch.wrong == []
    await context.close()


async def test_the_first_paint_of_an_event_page_needs_one_answer_below_60_kilobytes(
    chromium: Browser, town: Town
) -> None:
    context = await chromium.new_context()
    await context.add_init_script(
        "addEventListener('DOMContentLoaded', () => { window.blocking = performance.getEntriesByType('resource')"
        ".filter((entry) => entry.renderBlockingStatus === 'blocking').map((entry) => entry.name) })"
    )
    page = await context.new_page()

    for name, url in town.pages.items():
        answer = await page.goto(url)
        assert answer
        assert len(await answer.body()) < 60_000, name
        assert await page.evaluate("window.blocking") == [], name
    await context.close()


async def test_public_pages_cost_a_slow_phone_less_than_60_kilobytes_and_move_nothing(
    chromium: Browser, town: Town
) -> None:
    event = town.pages["with an end"]
    form = f"{town.address}/events/{event.rpartition('/')[2]}/embed"
    addresses = [*town.pages.values(), form]

    costs = await measure(chromium, SheetVisitor("anonymous", []), addresses)

    # The two links of the foot may come in two packets, of which the second moves the first: 0.0012.
    assert [
        (address, str(cost))
        for address, cost in zip(addresses, costs, strict=True)
        if cost.kilobytes >= 60 or cost.shift >= 0.002
    ] == []


async def test_a_text_of_ten_thousand_letters_leaves_the_page_below_60_kilobytes(town: Town) -> None:
    ada = await town.service.organizer()
    event = await ada.create_event(**{**FIELDS, "body": ("An evening of **drawing**, and talk. " * 7 + "\n\n") * 38})

    page = await town.service.http.get(event["public_url"])

    assert len(page.content) < 60_000


async def test_public_pages_say_the_same_without_scripts_except_for_the_clock_of_the_visitor(
    chromium: Browser, town: Town
) -> None:
    texts: list[list[str]] = []
    for scripts in (True, False):
        context = await chromium.new_context(java_script_enabled=scripts, timezone_id="Europe/Berlin")
        page = await context.new_page()
        texts.append([])
        for url in town.pages.values():
            await page.goto(url)
            # A button that copies is there only with scripts.
            texts[-1].append((await page.locator("main").inner_text()).replace("Copy\n", ""))
        await context.close()

    assert texts[0] == texts[1]


@pytest.mark.parametrize(("zone", "differs"), [("America/New_York", True), ("Europe/Paris", False)])
async def test_visitors_whose_clock_differs_see_their_own_time_too(
    chromium: Browser, town: Town, zone: str, differs: bool
) -> None:
    context = await chromium.new_context(timezone_id=zone, locale="en-US")
    page = await context.new_page()
    await page.goto(town.pages["open"])

    local_time = page.locator("[data-moment]")
    if differs:
        await expect(local_time).to_contain_text("Your time:")
        await expect(local_time).to_contain_text(re.compile(r"\d:\d\d\s[AP]M$"))
    else:
        await expect(local_time).to_be_hidden()
    await context.close()


@pytest.mark.parametrize(
    ("zone", "locale"),
    [("America/New_York", "en-US"), ("Pacific/Auckland", "en-GB"), ("Asia/Kolkata", "de-DE")],
)
@pytest.mark.parametrize("is_form", [False, True], ids=["page", "form"])
async def test_the_line_with_the_time_on_their_clock_moves_nothing(
    chromium: Browser, town: Town, zone: str, locale: str, is_form: bool
) -> None:
    context = await chromium.new_context(timezone_id=zone, locale=locale, viewport={"width": PHONE, "height": 844})
    await context.add_init_script(OBSERVER)
    page = await context.new_page()
    session: Any = await context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
    event = town.pages["with an end"]
    await page.goto(f"{town.address}/events/{event.rpartition('/')[2]}/embed" if is_form else event)

    await expect(page.locator("[data-moment]")).to_be_visible()
    # A part of a pixel, by which the fonts of the two texts may differ, is nothing that anybody sees.
    assert await page.evaluate("window.shift") < 0.001
    await context.close()


async def test_visitors_whose_clock_differs_see_on_it_when_an_event_ends(chromium: Browser, town: Town) -> None:
    context = await chromium.new_context(timezone_id="America/New_York", locale="en-US")
    page = await context.new_page()
    await page.goto(town.pages["with an end"])

    await expect(page.locator("[data-moment]")).to_contain_text(re.compile(r"12:00.*\u2013.*8:00\sPM$"))
    await context.close()


async def test_people_reach_the_form_and_the_calendar_by_keyboard(chromium: Browser, town: Town) -> None:
    context = await chromium.new_context()
    page = await context.new_page()
    await page.goto(town.pages["open"])
    reached: list[str] = []
    for _ in range(12):
        await page.keyboard.press("Tab")
        reached.append(
            await page.evaluate("(document.activeElement.name || document.activeElement.textContent).trim()")
        )

    assert reached[:4] == ["Skip to the content", "Studio am Fluss", "Add to calendar", "Show on a map"]
    assert reached.index("email") < reached.index("name") < reached.index("Register")
    assert "website" not in reached
    await context.close()
