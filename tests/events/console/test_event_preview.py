"""Beside the form of an event, organizers see the page of the event as it will look, before anything is stored."""

import html
import re

import httpx2

from tests.events.console.event_scene import event_form, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser, token
from tests.helpers.photos import JPEG
from tests.helpers.pictures import picture

NEW = "/console/events/new"


def preview(page: httpx2.Response) -> str:
    """The text of the preview in a page."""
    part = page.text[page.text.index('id="preview"') :].partition("</section>")[0]
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", part.partition(">")[2])).replace("\u202f", " ").split())


async def draw(browser: Browser, path: str = NEW, **fields: str) -> httpx2.Response:
    """The preview that the script of the form asks for."""
    answer = await browser.http.post(
        path, data={"token": token(await browser.get(path)), **fields, "do": "preview_part"}
    )
    assert (answer.status_code, "<form" in answer.text) == (200, False), answer.text
    return answer


async def test_a_new_event_is_shown_as_it_will_look_and_not_stored(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    moving = {"pricing_mode": "dynamic", "price": "12,5", "min_price": "8", "max_price": "20"}

    text = preview(await draw(browser, **event_form(address="Studio Street 1", **moving)))

    assert "Life drawing When Saturday, July 12, 2036 7:30 PM" in text
    assert "9:30 PM CEST Where" in text
    assert "Studio Studio Street 1 €12.50" in text
    assert "between €8.00 and €20.00. 0 of 12 taken 12 seats left" in text
    assert "Free" in preview(await draw(browser, **event_form(pricing_mode="free", price="")))
    assert "3 places on the waiting list" in text
    assert "40 places on the waiting list" in preview(
        await draw(browser, **event_form(capacity="400", waitinglist_capacity=""))
    )
    assert await stored_events(service) == []


async def test_the_preview_of_an_event_names_missing_and_invalid_fields_and_nothing_else(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    attack = "<script>alert(1)</script>"
    wrong = {"datetime": "9999-12-31T23:59", "ends_at": "soon", "timezone": attack, "capacity": "9" * 19}
    wrong |= {"price": "5", "currency": attack, "location_name": attack}

    empty = preview(await draw(browser))
    answer = await draw(browser, **event_form(title="", **wrong))

    for text in (empty, preview(answer)):
        for name in ("The title of your event", "The date and the time", "The number of seats"):
            assert name in text
    assert "The place Free" in empty
    assert "The price" in preview(answer)
    assert attack not in answer.text


async def test_the_preview_works_without_scripts_and_keeps_the_form(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    page = await browser.get(NEW)
    fields = {
        "token": token(page),
        **event_form(title="Pottery", capacity="many", cancellation_hours="0"),
        "do": "preview",
    }
    fields |= {"latitude": "", "longitude": ""}

    answer = await browser.http.post(NEW, data=fields, files=[("files", ("clay.jpg", picture(), JPEG))])
    usual = await browser.http.post(NEW, data={**fields, "cancellation_hours": "24"})

    [key] = re.findall(r'name="photo1" value="([^"]+)" checked', answer.text)
    part = answer.text[answer.text.index('id="preview"') :]
    assert (answer.status_code, f"/media/{key}" in part) == (200, True)
    assert "Pottery" in preview(answer)
    assert 'value="many"' in answer.text
    assert ' aria-invalid="true"' not in answer.text
    # What is seldom needed opens only to show something.
    assert ('<details id="more">' in answer.text, '<details id="more" open>' in usual.text) == (True, True)
    assert await stored_events(service) == []


async def test_the_preview_of_an_edited_event_shows_the_places_left(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=10, pricing_mode="fixed", price=1500, currency="EUR")
    draft = await ada.create_event(published=False)
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    path, before = f"/console/events/{event['id']}/edit", await stored_events(service)
    assert before[0][0]["registered_count"] == 1
    page = await browser.get(path)
    [version] = re.findall('name="version" value="([^"]+)"', page.text)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"location_name": "Studio"}})

    part = preview(await draw(browser, path, title="Pottery", capacity="20", price="9"))
    whole_page = await browser.http.post(
        path, data={"token": token(page), "version": version, "title": "", "do": "preview"}
    )

    assert "€9.00 1 of 20 taken 19 seats left" in part
    full = preview(await draw(browser, path, title="Pottery", capacity="1", price="9"))
    assert "€9.00 All seats are taken." in full
    assert "seats left" not in full
    label = "Made from the title; add a photo to replace it."
    assert part.startswith(f"How the page will look {label} Pottery")
    # What another person has changed meanwhile is still noticed when the form is sent.
    assert f'name="version" value="{version}"' in whole_page.text
    assert (whole_page.status_code, ' aria-invalid="true"' in whole_page.text) == (200, False)
    texts = [page.text, (await browser.get(f"/console/events/{draft['id']}/edit")).text]
    assert ["Only you see this draft." in text for text in texts] == [False, True]
    after = [stored for (stored,) in await stored_events(service)]
    assert [stored["title"] for stored in after] == [event["title"], draft["title"]]
