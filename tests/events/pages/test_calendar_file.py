"""The calendar file of an event can be added to any calendar."""

import pytest

from tests.events.pages.reading import calendar_properties, readable_text
from tests.helpers.events_service import Service


async def test_the_page_of_an_event_leads_to_a_calendar_file_with_its_date(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    event = await ada.create_event(title="Life drawing", datetime="2040-06-01T17:00:00Z", location_name="Studio 4")
    path = f"/events/{event['id']}/calendar.ics"

    page = await service.http.get(event["public_url"])
    file = await service.http.get(path)

    assert f'<a href="{path}">Add to calendar</a>' in page.text
    assert file.headers["content-type"] == "text/calendar; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="event-{event["id"]}.ics"'
    entry = calendar_properties(file)
    assert entry["SUMMARY"] == "Life drawing"
    assert entry["DTSTART"] == "20400601T170000Z"
    assert entry["LOCATION"] == "Studio 4"
    assert entry["URL"] == event["public_url"]


async def test_a_file_of_a_cancelled_event_takes_it_out_of_the_calendar(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    before = calendar_properties(await service.http.get(f"/events/{event['id']}/calendar.ics"))
    await ada.delete(f"/api/events/{event['id']}")

    after = calendar_properties(await service.http.get(f"/events/{event['id']}/calendar.ics"))
    page = await service.http.get(event["public_url"])

    assert (before["METHOD"], after["METHOD"]) == ("PUBLISH", "CANCEL")
    assert after["UID"] == before["UID"]
    assert int(after["SEQUENCE"]) > int(before["SEQUENCE"])
    assert "Add to calendar" not in readable_text(page)


@pytest.mark.parametrize("id", ["1", "0", "x", "1e3", "99999999999999999999"])
async def test_an_unknown_event_has_no_file(service: Service, id: str) -> None:
    assert (await service.http.get(f"/events/{id}/calendar.ics")).status_code == 404
