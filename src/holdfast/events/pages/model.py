"""What the pages for people show: events as anybody may see them."""

import datetime as dt

from msgspec import Struct

from holdfast.events.events.model import EventRow
from holdfast.events.ids import EventId
from holdfast.events.images.model import Sizes
from holdfast.events.pricing.model import PricingMode
from holdfast.kit.command import Command


class ReadEvent(Command):
    """Asks for everything that the page of an event shows."""

    event_id: EventId


class PricePoint(Struct, frozen=True):
    """A price, from a moment on."""

    timestamp: dt.datetime
    price: int


class Content(Struct):
    """An event with what its page shows besides.

    recurs_from    the first date of its series
    prices         the last prices of a moving price, oldest first
    sizes          the sizes of its photos, by their keys, for those that have them
    now            the time of the database
    """

    event: EventRow
    organizer_name: str
    recurs_from: dt.datetime | None
    now: dt.datetime
    prices: list[PricePoint]
    sizes: dict[str, Sizes]


class ReadOrganizer(Command):
    """Asks for the next events of an organizer, after an event with this date and id."""

    slug: str
    after: tuple[dt.datetime, int] | None


class Card(Struct):
    """An event in a list."""

    id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    location_name: str | None
    address: str | None
    pricing_mode: PricingMode
    currency: str
    current_price: int | None
    left: int
    room: int
    photo: str | None


class Organizer(Struct):
    """An organizer, and its next events.

    more    whether there are events after these
    """

    name: str
    slug: str
    events: list[Card]
    sizes: dict[str, Sizes]
    more: bool
