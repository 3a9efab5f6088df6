"""The lines of a text and of an address: kept where there is room for lines, with commas where there is one line."""

from typing import Any

from tests.events.pages.reading import calendar_properties, meta, structured_data
from tests.helpers.events_service import Service

LINES = "Studio 5\nHauptstr. 1\n10115 Berlin"
ONE_LINE = "Studio 5, Hauptstr. 1, 10115 Berlin"
FIELDS: dict[str, Any] = {"body": f"Where:\n{LINES}", "address": LINES}


async def test_a_page_keeps_the_lines_and_the_api_answers_what_was_written(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    event = await ada.create_event(**FIELDS)

    page = await service.http.get(event["public_url"])

    assert "<p>Where:<br>\nStudio 5<br>\nHauptstr. 1<br>\n10115 Berlin</p>" in page.text
    assert f'<span dir="auto" class="lines">{LINES}</span>' in page.text
    assert (event["body"], event["address"]) == (FIELDS["body"], LINES)


async def test_previews_structured_data_maps_calendars_and_feeds_have_one_line(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    event = await ada.create_event(**FIELDS)

    page = await service.http.get(event["public_url"])
    file = calendar_properties(await service.http.get(f"/events/{event['id']}/calendar.ics"))
    feed = calendar_properties(await service.http.get(f"/organizers/{ada.slug}/events.ics"))
    rss = await service.http.get(f"/organizers/{ada.slug}/events.rss")

    assert meta(page, "description") == "Where: Studio 5 Hauptstr. 1 10115 Berlin"
    assert structured_data(page)["location"]["address"] == ONE_LINE
    assert "query=Studio%205%2C%20Hauptstr.%201%2C%2010115%20Berlin" in page.text
    assert file["LOCATION"] == feed["LOCATION"] == ONE_LINE.replace(",", "\\,")
    assert f"· {ONE_LINE}<" in rss.text
