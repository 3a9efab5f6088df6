"""The calendar file of an event opens in every calendar, with any text of people in it."""

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import Calendar
from msgspec import Struct

from holdfast.events.events.calendar_file import calendar_feed, calendar_file
from holdfast.events.settings import Settings


class Dated(Struct):
    id: int = 7
    title: str = "Life drawing"
    datetime: dt.datetime = dt.datetime(2031, 5, 1, 18, tzinfo=dt.UTC)
    ends_at: dt.datetime | None = None
    location_name: str | None = "The hall"
    address: str | None = "Main street 1, Berlin"
    latitude: float | None = 52.5
    longitude: float | None = 13.4
    calendar_sequence: int = 3
    cancelled_at: dt.datetime | None = None


SETTINGS = Settings(
    base_url="https://events.example:8443", mail_from="Tickets <tickets@events.example>", data_dir=Path()
)  # pyright: ignore[reportCallIssue]
STAMP = dt.datetime(2031, 1, 1, 12, 0, 0, 999, tzinfo=dt.UTC)
URL = "https://events.example/organizers/ada/events/7"


def file(event: Dated, **options: Any) -> str:
    return calendar_file(event, SETTINGS, url=URL, stamp=STAMP, **options).decode()


def test_the_file_of_an_event_is_to_the_letter_what_calendars_expect() -> None:
    assert file(Dated(), organizer='Ada "Events"').splitlines() == [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Holdfast//Holdfast Events//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "BEGIN:VEVENT",
        "SUMMARY:Life drawing",
        "DTSTART:20310501T180000Z",
        "DTEND:20310501T190000Z",
        "DTSTAMP:20310101T120000Z",
        "UID:event-7@events.example",
        "SEQUENCE:3",
        "DESCRIPTION:https://events.example/organizers/ada/events/7",
        "GEO:52.5;13.4",
        "LOCATION:The hall\\, Main street 1\\, Berlin",
        "ORGANIZER;CN=\"Ada 'Events'\":mailto:tickets@events.example",
        "STATUS:CONFIRMED",
        "URL:https://events.example/organizers/ada/events/7",
        "END:VEVENT",
        "END:VCALENDAR",
    ]


def test_the_end_of_an_event_is_in_the_file_in_utc() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    assert "DTSTART:20310501T180000Z\r\nDTEND:20310501T203000Z\r\n" in file(
        Dated(ends_at=dt.datetime(2031, 5, 1, 22, 30, tzinfo=berlin))
    )


def test_an_event_without_an_end_lasts_an_hour_in_calendars() -> None:
    """Before, it lasted zero minutes, which calendars show as a line or not at all."""
    feed = calendar_feed([(Dated(), URL)], SETTINGS, stamp=STAMP, name="Ada").decode()

    for text in (file(Dated()), file(Dated(), method="CANCEL"), feed):
        assert "DTSTART:20310501T180000Z\r\nDTEND:20310501T190000Z\r\n" in text


def test_a_registration_has_an_entry_of_its_own_that_can_be_taken_out() -> None:
    text = file(Dated(), registration="7-abcdefgh", method="CANCEL")

    assert "UID:registration-7-abcdefgh@events.example\r\n" in text
    assert "METHOD:CANCEL\r\n" in text
    assert "STATUS:CANCELLED\r\n" in text


def test_texts_of_people_are_escaped_in_a_calendar_file() -> None:
    hostile = "Evil\r\nEND:VEVENT\r\nBEGIN:VALARM;x=,\\n\u202e" + "ä" * 200
    text = file(Dated(title=hostile, location_name=hostile, address=None, latitude=None), organizer=hostile)

    parsed: Any = Calendar.from_ical(text)
    [entry] = parsed.walk("VEVENT")
    assert not parsed.walk("VALARM")
    assert entry["SUMMARY"] == "Evil END:VEVENT BEGIN:VALARM;x=,\\n" + "ä" * 200
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))


def test_a_calendar_file_without_a_sender_of_mails_names_no_organizer() -> None:
    settings = SETTINGS.model_copy(update={"mail_from": ""})
    assert b"ORGANIZER" not in calendar_file(Dated(), settings, url=URL, stamp=STAMP, organizer="Ada")


TEXTS = st.text(max_size=120)


@settings(max_examples=60)
@given(
    st.lists(
        st.builds(Dated, title=TEXTS, location_name=st.none() | TEXTS, calendar_sequence=st.integers(0, 3)),
        min_size=1,
        max_size=3,
    ),
    st.lists(
        st.tuples(st.text("abc-,;:/?=&\\%1", max_size=200), st.datetimes(dt.datetime(1999, 1, 1))),
        min_size=1,
        max_size=3,
    ),
)
def test_a_calendar_file_is_the_same_whatever_files_were_written_before(
    events: list[Dated], visits: list[tuple[str, dt.datetime]]
) -> None:
    for path, moment in visits:
        for event in events:
            url, stamp = f"https://events.example/{path}", moment.replace(tzinfo=dt.UTC)

            file = calendar_file(event, SETTINGS, url=url, stamp=stamp, organizer="Ada")

            # The feed is written by the library, from the beginning.
            feed = calendar_feed([(event, url)], SETTINGS, stamp=stamp, name="Ada")
            assert entry_of(file) == entry_of(feed)


def entry_of(calendar: bytes) -> bytes:
    return calendar[calendar.index(b"BEGIN:VEVENT") : calendar.rindex(b"END:VEVENT")]
