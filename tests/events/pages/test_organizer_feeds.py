"""Calendars and feed readers follow the published events of an organizer."""

import asyncio
import threading
from typing import Any
from xml.etree import ElementTree

from icalendar import Calendar

from holdfast.events.pages import operations
from tests.helpers.events_service import Client, Service


async def events_of(service: Service, ada: Client) -> dict[str, dict[str, Any]]:
    """A draft, an event that is cancelled, one that was last week, one of last year, and two to come."""
    titles = ("Draft", "Cancelled", "Last week", "Last year", "Ink & <b>paper</b>\x0b", "Life drawing")
    day = {"datetime": "2040-06-01T17:00:00Z", "timezone": "Europe/Berlin", "location_name": "Studio, 4"}
    events = {title: await ada.create_event(title=title, published=title != "Draft", **day) for title in titles}
    await ada.delete(f"/api/events/{events['Cancelled']['id']}")
    for title, days in (("Last week", 7), ("Last year", 365)):
        past = "update events set datetime = now() - %(days)s * interval '1 day' where id = %(id)s"
        await service.run_sql(past, days=days, id=events[title]["id"])
    return events


async def test_a_calendar_has_the_events_and_marks_those_that_are_cancelled(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    events = await events_of(service, ada)
    await (await service.organizer()).create_event(title="Of somebody else")
    path = f"/organizers/{ada.slug}/events.ics"

    page = await service.http.get(f"/organizers/{ada.slug}")
    answer = await service.http.get(path)

    assert f'<link rel="alternate" type="text/calendar" title="Calendar" href="{path}">' in page.text
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    calendar: Any = Calendar.from_ical(answer.content)
    entries = {str(entry["SUMMARY"]): entry for entry in calendar.walk("VEVENT")}
    assert str(calendar["X-WR-CALNAME"]) == "Ada Events"
    assert {title: str(entry["STATUS"]) for title, entry in entries.items()} == {
        "Last week": "CONFIRMED",
        "Cancelled": "CANCELLED",
        "Ink & <b>paper</b>": "CONFIRMED",
        "Life drawing": "CONFIRMED",
    }
    entry = entries["Life drawing"]
    assert str(entry["UID"]) == f"event-{events['Life drawing']['id']}@events.test"
    assert str(entry["LOCATION"]) == "Studio, 4"
    assert str(entry["URL"]) == events["Life drawing"]["public_url"]
    again = await service.http.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert (await service.http.get("/organizers/nobody/events.ics")).status_code == 404


async def test_rss_has_what_is_to_come_the_newest_first(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    events = await events_of(service, ada)
    path = f"/organizers/{ada.slug}/events.rss"

    page = await service.http.get(f"/organizers/{ada.slug}")
    answer = await service.http.get(path, headers={"Accept-Language": "de"})

    assert f'type="application/rss+xml" title="RSS" href="{path}"' in page.text
    assert answer.headers["content-type"] == "application/rss+xml; charset=utf-8"
    feed = ElementTree.fromstring(answer.content)
    assert feed.findtext("channel/title") == "Ada Events"
    assert feed.findtext("channel/language") == "de"
    assert [item.findtext("title") for item in feed.iter("item")] == ["Life drawing", "Ink & <b>paper</b>"]
    [newest, _] = feed.iter("item")
    assert newest.findtext("link") == newest.findtext("guid") == events["Life drawing"]["public_url"]
    assert newest.findtext("description") == "Fr., 1. Juni 2040, 19:00\u00a0MESZ · Studio, 4"
    assert (await service.http.get("/organizers/nobody/events.rss")).status_code == 404


async def test_feeds_are_bounded_and_do_not_name_an_unconfirmed_organizer(service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr(operations, "FEED_SIZE", 2)
    ada = await service.organizer("Ada Events", is_proved=False)
    for day in (3, 1, 2):
        await ada.create_event(title=f"Day {day}", datetime=f"2040-06-0{day}T17:00:00Z")

    calendar = (await service.http.get(f"/organizers/{ada.slug}/events.ics")).text
    feed = (await service.http.get(f"/organizers/{ada.slug}/events.rss")).text

    for text in (calendar, feed):
        assert [f"Day {day}" in text for day in (1, 2, 3)] == [True, True, False]
        assert "Unconfirmed organizer" in text
        assert "Ada" not in text


async def test_a_calendar_is_written_once_until_it_changes_and_holds_up_no_other_request(
    service: Service, monkeypatch: Any
) -> None:
    writers = list[threading.Thread]()
    write = Calendar.to_ical

    def note(calendar: Calendar) -> bytes:
        writers.append(threading.current_thread())
        return write(calendar)

    monkeypatch.setattr(Calendar, "to_ical", note)
    ada = await service.organizer("Ada Events")
    event = await ada.create_event(title="Pottery")
    path = f"/organizers/{ada.slug}/events.ics"

    answers = await asyncio.gather(*[service.http.get(path) for _ in range(5)])
    written = len(writers)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
    changed = await service.http.get(path)

    assert (written, len(writers)) == (1, 2)
    assert threading.main_thread() not in writers
    assert all("Pottery" in answer.text for answer in answers)
    assert "Watercolours" in changed.text
