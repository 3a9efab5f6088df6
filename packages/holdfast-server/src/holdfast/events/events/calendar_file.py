"""Events as calendar files (iCalendar): one for mails and for its public page, or all of an organizer.

Times are in UTC: every calendar shows them in the reader's time zone. The file uses the method PUBLISH, which asks for
no answer, because declining in a calendar would not cancel a registration. A later file with the same uid replaces it.
"""

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from icalendar import Calendar, Event, vCalAddress, vGeo, vText
from icalendar.parser import Contentline
from msgspec import Struct

from holdfast.kit.contract.addresses import sender_address
from holdfast.kit.mail.message import header_text, joined_lines

Method = Literal["PUBLISH", "CANCEL"]

LENGTH_WITHOUT_END = dt.timedelta(hours=1)
"""How long an event without an end lasts in calendars. RFC 5545 (3.6.1) would make it zero minutes."""


_VARYING_LINE = re.compile("^(DTSTAMP|UID|DESCRIPTION|URL):.*\r\n", re.MULTILINE)
"""A line that differs between the files of one event, where its value is so short that it is not folded."""

_ANY_TIME = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)

FILE_CACHE_SIZE = 64
"""Events whose lines are remembered between files."""


class CalendarEvent(Protocol):
    """The fields of an event that a calendar shows."""

    @property
    def id(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def datetime(self) -> dt.datetime: ...
    @property
    def ends_at(self) -> dt.datetime | None: ...
    @property
    def location_name(self) -> str | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def latitude(self) -> float | None: ...
    @property
    def longitude(self) -> float | None: ...
    @property
    def calendar_sequence(self) -> int: ...
    @property
    def cancelled_at(self) -> dt.datetime | None: ...


class Publisher(Protocol):
    """The settings of the service that publishes calendars.

    mail_from    the sender of its mails; empty: none is set
    """

    @property
    def base_url(self) -> str: ...
    @property
    def mail_from(self) -> str: ...


def calendar_file(
    event: CalendarEvent,
    publisher: Publisher,
    *,
    url: str,
    stamp: dt.datetime,
    registration: str = "",
    method: Method = "PUBLISH",
    organizer: str | None = None,
) -> bytes:
    """The calendar file of an event.

    url             the page to which it links
    stamp           the time at which it was made; of two files with the same sequence, the later one is valid
    registration    the registration it is about, `<event_id>-<user_id>`; empty: it is about the event itself
    method          CANCEL removes the event from the calendar
    organizer       the name of the organizer
    """
    host = urlsplit(publisher.base_url).hostname
    varying_lines = {
        "DTSTAMP": f"{stamp.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}",
        "UID": _escaped(f"registration-{registration}@{host}" if registration else f"event-{event.id}@{host}"),
        "DESCRIPTION": _escaped(url),
        "URL": url,
    }
    parts = _file_parts(_FixedFields.of(event, publisher, method, organizer))
    # The parts are texts and names of lines by turns.
    return "".join(
        f"{Contentline(f'{part}:{varying_lines[part]}').to_ical().decode()}\r\n" if index % 2 else part
        for index, part in enumerate(parts)
    ).encode()


class _FixedFields(Struct, frozen=True):
    """What is the same in all files of an event, as `CalendarEvent` and `Publisher` have it."""

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    location_name: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    calendar_sequence: int
    cancelled_at: dt.datetime | None
    base_url: str
    mail_from: str
    method: Method
    organizer: str | None

    @classmethod
    def of(cls, event: CalendarEvent, publisher: Publisher, method: Method, organizer: str | None) -> "_FixedFields":
        return cls(
            id=event.id,
            title=event.title,
            datetime=event.datetime,
            ends_at=event.ends_at,
            location_name=event.location_name,
            address=event.address,
            latitude=event.latitude,
            longitude=event.longitude,
            calendar_sequence=event.calendar_sequence,
            cancelled_at=event.cancelled_at,
            base_url=publisher.base_url,
            mail_from=publisher.mail_from,
            method=method,
            organizer=organizer,
        )


@lru_cache(maxsize=FILE_CACHE_SIZE)
def _file_parts(fields: _FixedFields) -> list[str]:
    """The file of an event, divided at its varying lines: a text, the name of a line, the next text, and so on."""
    file = _calendar({"method": fields.method})
    is_cancelled = fields.method == "CANCEL"
    file.add_component(
        _entry(fields, fields, "", url="", stamp=_ANY_TIME, is_cancelled=is_cancelled, organizer=fields.organizer)
    )
    return _VARYING_LINE.split(file.to_ical().decode())


def _escaped(text: str) -> str:
    return vText(text).to_ical().decode()


def calendar_feed(
    entries: Iterable[tuple[CalendarEvent, str]], publisher: Publisher, *, stamp: dt.datetime, name: str
) -> bytes:
    """The calendar of an organizer, for calendars that ask for it again each hour.

    entries    its events, each with the page to which it links; cancelled ones are marked as cancelled
    name       the name of the organizer
    """
    calendar_name = header_text(name)
    file = _calendar({"name": calendar_name, "x-wr-calname": calendar_name, "x-published-ttl": "PT1H"})
    for event, url in entries:
        file.add_component(_entry(event, publisher, f"event-{event.id}", url=url, stamp=stamp, organizer=name))
    return file.to_ical()


def _calendar(properties: Mapping[str, Any]) -> Any:
    fixed = {"prodid": "-//Holdfast//Holdfast Events//EN", "version": "2.0", "calscale": "GREGORIAN"}
    return _with_properties(Calendar(), {**fixed, **properties})


def _entry(
    event: CalendarEvent,
    publisher: Publisher,
    name: str,
    *,
    url: str,
    stamp: dt.datetime,
    organizer: str | None,
    is_cancelled: bool = False,
) -> Any:
    """An event in a calendar. `name`: the part of its uid before the `@`."""
    entry: dict[str, Any] = {
        "uid": f"{name}@{urlsplit(publisher.base_url).hostname}",
        "dtstamp": stamp.astimezone(dt.UTC).replace(microsecond=0),
        "dtstart": event.datetime.astimezone(dt.UTC),
        "dtend": (event.ends_at or event.datetime + LENGTH_WITHOUT_END).astimezone(dt.UTC),
        "sequence": event.calendar_sequence,
        "status": "CANCELLED" if is_cancelled or event.cancelled_at else "CONFIRMED",
        "summary": header_text(event.title),
        "description": url,
        "url": url,
        "location": ", ".join(joined_lines(part) for part in (event.location_name, event.address) if part) or None,
        "organizer": _organizer(publisher, organizer),
    }
    if event.latitude is not None and event.longitude is not None:
        entry["geo"] = vGeo((event.latitude, event.longitude))
    return _with_properties(Event(), entry)


def _with_properties(component: Any, properties: Mapping[str, Any]) -> Any:
    for name, value in properties.items():
        if value is not None:
            component.add(name, value)
    return component


def _organizer(publisher: Publisher, name: str | None) -> vCalAddress | None:
    """The organizer property, with the address from which mails come; None without an address."""
    if not publisher.mail_from:
        return None
    address = vCalAddress(f"mailto:{sender_address(publisher.mail_from)}")
    if name:
        address.params["cn"] = header_text(name).replace('"', "'")
    return address
