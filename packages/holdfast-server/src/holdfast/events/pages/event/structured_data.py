"""An event as JSON-LD in the words of schema.org, for search engines."""

from decimal import Decimal
from typing import Any

import msgspec
from markupsafe import Markup

from holdfast.events.events.model import EventRow
from holdfast.events.processor.currencies import digits
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.mail.message import joined_lines
from holdfast.kit.pages.language import local_time

SCHEMA = "https://schema.org"


def event_json_ld(
    event: EventRow, *, address: str, organizer: tuple[str, str] | None, summary: str, images: list[str]
) -> Markup:
    """The event as JSON-LD, safe inside a script element.

    address      the address of the event's page
    organizer    the name of the organizer and the address of its page; None: it has not confirmed its address
    """
    data: dict[str, Any] = {
        "@context": SCHEMA,
        "@type": "Event",
        "name": one_line(event.title),
        "description": summary,
        "url": address,
        "startDate": local_time(event.datetime, event.timezone or "UTC").isoformat(),
        "eventStatus": f"{SCHEMA}/{'EventCancelled' if event.status == 'cancelled' else 'EventScheduled'}",
        "offers": _offer(event, address),
        "maximumAttendeeCapacity": event.capacity,
        "remainingAttendeeCapacity": event.capacity - event.registered_count,
    }
    if event.ends_at:
        data["endDate"] = local_time(event.ends_at, event.timezone or "UTC").isoformat()
    if organizer:
        data["organizer"] = {"@type": "Organization", "name": one_line(organizer[0]), "url": organizer[1]}
    if images:
        data["image"] = images
    if venue := _venue(event):
        data |= {"eventAttendanceMode": f"{SCHEMA}/OfflineEventAttendanceMode", "location": venue}
    return Markup(_inside_script(msgspec.json.encode(data).decode()))  # noqa: S704 - nothing in it ends the element


def _offer(event: EventRow, address: str) -> dict[str, Any]:
    price = Decimal(event.current_price or 0).scaleb(-digits(event.currency))
    return {
        "@type": "Offer",
        "url": address,
        "price": f"{price:f}",
        "priceCurrency": event.currency,
        "availability": f"{SCHEMA}/{'InStock' if event.status == 'active' else 'SoldOut'}",
        "validFrom": event.inserted_at.isoformat(timespec="seconds"),
    }


def _venue(event: EventRow) -> dict[str, Any] | None:
    """The place of the event; None if it has none."""
    name, address = one_line(event.location_name or ""), one_line(joined_lines(event.address or ""), 500)
    if not name and not address and event.latitude is None:
        return None
    venue: dict[str, Any] = {"@type": "Place", "name": name or address}
    if address:
        venue["address"] = address
    if event.latitude is not None and event.longitude is not None:
        venue["geo"] = {"@type": "GeoCoordinates", "latitude": event.latitude, "longitude": event.longitude}
    return venue


def _inside_script(json: str) -> str:
    """JSON escaped so that nothing in it ends a script element or begins a comment."""
    for character in "<>&\u2028\u2029":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return json
