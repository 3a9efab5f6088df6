"""Organizers keep drafts in the console, publish them, and unpublish those without registrations."""

import re
from typing import Any

import httpx2
import pytest

from tests.events.console.event_scene import FREE, event_form, foreign_event, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser, main_text

PAGE = "/console/events/new"


def buttons(page: httpx2.Response) -> list[str]:
    """What the buttons of a page say that change whether its event is published."""
    return re.findall('name="do" value="((?:un)?publish|draft)"', page.text)


async def press(browser: Browser, path: str, button: str) -> httpx2.Response:
    return await browser.send(path, f"{path}/publication", do=button)


async def test_the_form_of_an_event_saves_a_draft_unless_it_is_published(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)

    page = await browser.get(PAGE)
    fields = event_form(**FREE)
    for typed in ({**fields, "do": "draft"}, {**fields, "do": ""}, fields):
        assert (await browser.send(PAGE, **typed)).status_code == 303

    # The Enter key presses the first button.
    assert buttons(page) == ["draft", "publish"]
    events = (await ada.get("/api/events")).json()["data"]
    assert [event["published"] for event in events] == [False, False, True]


async def test_a_copy_is_a_draft_too_unless_it_is_published(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    for button in ("draft", "publish"):
        done = await browser.send(PAGE, **event_form(**FREE, copy=str(event["id"]), do=button))
        assert done.status_code == 303, done.text

    assert [event["published"] for event in (await ada.get("/api/events")).json()["data"]] == [True, False, True]


async def test_a_draft_is_published_by_a_button_on_its_page(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False)
    path = f"/console/events/{draft['id']}"

    before, home = await browser.get(path), await browser.get("/console")
    done = await press(browser, path, "publish")
    after = await browser.get(path)

    assert "This event is a draft. Nobody can register before you publish the event." in main_text(before)
    assert re.search(r"Draft .* 0 of 10 seats taken", main_text(home))
    assert (buttons(before), buttons(after)) == (["publish"], ["unpublish"])
    assert ["View page" in page.text for page in (before, after)] == [False, True]
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=published")
    assert "Your event is published." in main_text(await browser.get(done.headers["location"]))
    assert "Your event is published." not in main_text(after)
    assert (await ada.get(f"/api/events/{draft['id']}")).json()["data"]["published"] is True
    assert (await service.http.get(draft["public_url"])).status_code == 200


@pytest.mark.parametrize(
    ("fields", "obstacle", "link"),
    [
        (
            {"datetime": "2020-07-12T17:30:00Z"},
            "Its date is in the past It takes place Sunday, July 12, 2020",
            "/edit#datetime",
        ),
        (
            {"pricing_mode": "fixed", "price": 10, "currency": "EUR"},
            "A seat costs €0.10. It must be at least €0.50.",
            "/edit#price",
        ),
        ({"pricing_mode": "fixed", "price": 1250, "currency": "EUR"}, "this service takes no payments yet", None),
    ],
)
async def test_a_draft_without_possible_registrations_is_published_only_after_a_question(
    service: Service, fields: dict[str, Any], obstacle: str, link: str | None
) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False, **fields)
    path = f"/console/events/{draft['id']}"

    question = await press(browser, path, "publish")
    is_draft_still = not (await ada.get(f"/api/events/{draft['id']}")).json()["data"]["published"]
    done = await browser.send(path, f"{path}/publication", do="publish", anyway="yes")

    assert (question.status_code, is_draft_still) == (200, True)
    assert obstacle in main_text(question)
    assert link is None or f'href="{path}{link}"' in question.text
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=published")
    assert (await ada.get(f"/api/events/{draft['id']}")).json()["data"]["published"] is True


@pytest.mark.parametrize("typed", [{**FREE, "datetime": "2020-07-12T19:30", "ends_at": ""}, {"price": "12.50"}])
async def test_a_new_event_without_possible_registrations_is_a_draft_with_the_same_question(
    service: Service, typed: dict[str, str]
) -> None:
    ada, browser = await sign_in_organizer(service)

    done = await browser.send(PAGE, **event_form(**typed))
    question = await browser.get(done.headers["location"])

    [event] = (await ada.get("/api/events")).json()["data"]
    assert (done.status_code, event["published"]) == (303, False)
    assert done.headers["location"] == f"/console/events/{event['id']}/publication"
    assert "is saved as a draft. If you publish it now, nobody can register on its page:" in main_text(question)


async def test_an_event_becomes_a_draft_again_only_before_the_first_registration(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}"

    done = await press(browser, path, "unpublish")
    assert (done.status_code, (await service.http.get(event["public_url"])).status_code) == (303, 404)
    await press(browser, path, "publish")
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    refusal = await press(browser, path, "unpublish")

    assert refusal.status_code == 422
    assert f"Event {event['id']} has registrations, so it cannot become a draft again." in main_text(refusal)
    assert buttons(await browser.get(path)) == []
    assert (await service.http.get(event["public_url"])).status_code == 200


async def test_the_refusal_is_in_german_on_a_german_page(service: Service) -> None:
    ada, browser = await sign_in_organizer(service, language="de")
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")

    refusal = await press(browser, f"/console/events/{event['id']}", "unpublish")

    assert f"Für die Veranstaltung {event['id']} gibt es Anmeldungen." in main_text(refusal)


async def test_the_event_of_another_organizer_is_not_published(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    other = await foreign_event(service, published=False)
    before = await stored_events(service)

    sent = await browser.send("/console", f"/console/events/{other['id']}/publication", do="publish")

    assert (sent.status_code, await stored_events(service)) == (403, before)


async def test_a_form_of_another_site_publishes_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False)
    path = f"/console/events/{draft['id']}/publication"

    forged = await browser.http.post(path, data={"do": "publish", "token": "1-forged"})
    opened = await browser.get(path)

    assert (forged.status_code, opened.status_code) == (403, 303)
    assert (await ada.get(f"/api/events/{draft['id']}")).json()["data"]["published"] is False


async def test_a_draft_takes_no_added_people(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False)
    path = f"/console/events/{draft['id']}/registrations"

    listed, adding = await browser.get(path), await browser.get(f"/console/events/{draft['id']}/add-registration")

    assert "calendar.ics" not in listed.text
    assert "The event is a draft. Publish it first, then people can be registered for it." in main_text(adding)
