"""What the page of an event will show, for the values that are typed into its form so far.

A value that is missing or wrong is None: the preview says what will be there. A preview stores nothing.
"""

import datetime as dt
from collections.abc import Mapping

from markupsafe import Markup
from msgspec import Struct

from holdfast.events.console.events.event_form import command_values
from holdfast.events.events.model import EventRow
from holdfast.events.events.zones import ZONES
from holdfast.events.images.model import ImageAttributes
from holdfast.events.markdown import one_line
from holdfast.events.pages.cover import cover_svg
from holdfast.events.processor.currencies import CURRENCIES

PREVIEW_PART = "preview_part"
"""The value of `do` with which the script of a form asks for the preview alone."""

PREVIEW_SCRIPT = "console/events/preview.js"

MAX_TITLE_CHARACTERS = 300
MAX_PLACES = 10_000_000


class EventPreview(Struct, frozen=True):
    """What the page of an event will show.

    zone       the time zone of the moments
    price      the price in minor units; 0: free; None: not known yet
    bounds     the lowest and the highest price of a price that moves
    places     the number of places; `left`: how many of them are free
    photo      the photo above the title; None: the cover is drawn from the title
    """

    title: str
    starts_at: dt.datetime | None
    ends_at: dt.datetime | None
    zone: str
    location_name: str
    address: str
    price: int | None
    bounds: tuple[int, int] | None
    currency: str
    places: int | None
    left: int
    photo: ImageAttributes | None
    cover: Markup


def preview_of(values: Mapping[str, str], photo: ImageAttributes | None, event: EventRow | None = None) -> EventPreview:
    """The preview for typed values. `event`: the event to edit; None: a new one."""
    raw, errors = command_values(values, event)
    known = {name: value for name, value in raw.items() if name not in errors}
    starts_at, ends_at = (_moment(known.get(name)) for name in ("datetime", "ends_at"))
    mode = event.pricing_mode if event else values.get("pricing_mode", "")
    currency = event.currency if event else values.get("currency", "")
    price, lowest, highest = (_count(known.get(name)) for name in ("price", "min_price", "max_price"))
    is_bounded = mode == "dynamic" and lowest is not None and highest is not None and lowest < highest
    places = _count(known.get("capacity"))
    title = one_line(values.get("title", ""), MAX_TITLE_CHARACTERS)
    return EventPreview(
        title=title,
        starts_at=starts_at,
        ends_at=ends_at if starts_at and ends_at and starts_at < ends_at else None,
        zone=zone if (zone := values.get("timezone", "")) in ZONES else "UTC",
        location_name=values.get("location_name", ""),
        address=values.get("address", ""),
        price=0 if mode == "free" else price if currency in CURRENCIES else None,
        bounds=(lowest, highest) if is_bounded and lowest is not None and highest is not None else None,
        currency=currency,
        places=places if places and places <= MAX_PLACES else None,
        left=max(0, (places or 0) - (event.registered_count if event else 0)),
        photo=photo,
        cover=cover_svg(title),
    )


def _moment(value: object) -> dt.datetime | None:
    """A moment of the command. None outside the years that an event may have, which every zone can show."""
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    return moment if moment and 1970 <= moment.year < 9000 else None


def _count(value: object) -> int | None:
    """A number of the command that is not negative."""
    return value if isinstance(value, int) and value >= 0 else None
