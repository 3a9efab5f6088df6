"""Organizers let an event open with a draw: in the form, on its page, among its registrations, and when it is void."""

import datetime as dt

from tests.events.console.event_scene import FREE, event_form, open_edit_form
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text

PAGE = "/console/events/new"


async def test_an_event_opens_with_a_draw_that_the_organizer_sets_and_gives_up_when_it_is_void(
    service: Service,
) -> None:
    ada, browser = await sign_in_organizer(service)
    assert "One e-mail address is one entry: a draw cannot tell persons apart." in main_text(await browser.get(PAGE))
    late = await browser.send(PAGE, **event_form(opens_at="2036-07-13T10:00"))
    assert "This must be earlier than" in main_text(late)
    assert (await browser.send(PAGE, **event_form(**FREE, opens_at="2036-07-01T10:00"))).status_code == 303
    [event] = (await ada.get("/api/events")).json()["data"]
    assert dt.datetime.fromisoformat(event["opens_at"]) == dt.datetime(2036, 7, 1, 8, tzinfo=dt.UTC)
    path = f"/console/events/{event['id']}"
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    page = main_text(await browser.get(path))
    assert "Entries close" in page
    assert "1 entry so far." in page
    assert "In the draw" in main_text(await browser.get(f"{path}/registrations"))
    assert "In der Verlosung" in main_text(await browser.get(f"{path}/registrations?lang=de"))
    edit, fields = await open_edit_form(browser, event)
    again = await browser.http.post(edit, data={**fields, "opens_at": ""})
    assert "This cannot be changed after the first entry" in main_text(again)

    await service.run_sql("update events set draw_at = now() - interval '1 hour', draw_void_at = now()")
    await service.wait_for_notices()
    assert "Nobody gets a place until you decide how to go on." in main_text(await browser.get(path))
    edit, fields = await open_edit_form(browser, event)
    given_up = await browser.http.post(edit, data={**fields, "opens_at": ""})
    assert given_up.status_code == 303, main_text(given_up)
    [event] = (await ada.get("/api/events")).json()["data"]
    assert event["opens_at"] is None
