"""An event as a calendar file (iCalendar), for mails and for the public page.

Times are in UTC: every calendar shows them in the zone of who looks. The file is published; it asks nobody for an
answer, since declining in a calendar would not cancel a registration. A later file with the same uid replaces it.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from icalendar import Calendar, Event, vCalAddress, vGeo

from holdfast.kit.mail import plain, sender_address

Method = Literal["PUBLISH", "CANCEL"]


class Dated(Protocol):
    """What a calendar shows of an event."""

    @property
    def id(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def datetime(self) -> dt.datetime: ...
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
    """The service that publishes calendars, as its settings say.

    mail_from    the sender of its mails; empty: none is set
    """

    @property
    def base_url(self) -> str: ...
    @property
    def mail_from(self) -> str: ...


def calendar(
    event: Dated,
    publisher: Publisher,
    *,
    url: str,
    stamp: dt.datetime,
    of: str = "",
    method: Method = "PUBLISH",
    organizer: str | None = None,
) -> bytes:
    """The calendar file of an event.

    url          the page that it links to
    stamp        when it was made; of two files with the same sequence the later one holds
    of           names the registration that it is about, `<event_id>-<user_id>`; empty: it is about the event itself
    method       CANCEL takes the event out of the calendar
    organizer    the name of the organizer
    """
    name = f"registration-{of}" if of else f"event-{event.id}"
    entry: dict[str, Any] = {
        "uid": f"{name}@{urlsplit(publisher.base_url).hostname}",
        "dtstamp": stamp.astimezone(dt.UTC).replace(microsecond=0),
        "dtstart": event.datetime.astimezone(dt.UTC),
        "sequence": event.calendar_sequence,
        "status": "CANCELLED" if method == "CANCEL" or event.cancelled_at else "CONFIRMED",
        "summary": plain(event.title),
        "description": url,
        "url": url,
        "location": ", ".join(plain(each) for each in (event.location_name, event.address) if each) or None,
        "organizer": _organizer(publisher, organizer),
    }
    if event.latitude is not None and event.longitude is not None:
        entry["geo"] = vGeo((event.latitude, event.longitude))
    file = _filled(
        Calendar(),
        {"prodid": "-//Holdfast//Holdfast Events//EN", "version": "2.0", "calscale": "GREGORIAN", "method": method},
    )
    file.add_component(_filled(Event(), entry))
    return file.to_ical()


def _filled(component: Any, properties: Mapping[str, Any]) -> Any:
    for name, value in properties.items():
        if value is not None:
            component.add(name, value)
    return component


def _organizer(publisher: Publisher, name: str | None) -> vCalAddress | None:
    """Who publishes it, at the address from which mails come; None without one."""
    if not publisher.mail_from:
        return None
    address = vCalAddress(f"mailto:{sender_address(publisher.mail_from)}")
    if name:
        address.params["cn"] = plain(name).replace('"', "'")
    return address
