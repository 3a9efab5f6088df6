"""The content of the public pages: events and organizers."""

import datetime as dt

from msgspec import Struct

from holdfast.events.events.model import EventRow
from holdfast.events.ids import EventId
from holdfast.events.images.model import PhotoSizes
from holdfast.events.markdown import RenderedText
from holdfast.events.pricing.model import PricingMode
from holdfast.kit.contract.command import Command


class ReadEvent(Command):
    """Asks for the content of the page of an event."""

    event_id: EventId


class PricePoint(Struct, frozen=True):
    """A price and the moment from which it was valid."""

    timestamp: dt.datetime
    price: int


class EventContent(Struct):
    """The content of the page of an event.

    organizer_name    None while the organizer has not confirmed its address
    accent, logo      the accent and the file of the logo of the organizer, or None
    recurs_from    the first date of its series
    prices         the last prices of a dynamic price, oldest first
    text           its text as HTML, if it is stored
    sizes          the sizes of its photos by key, for photos that have them
    now            the time of the database
    """

    event: EventRow
    text: RenderedText | None
    organizer_name: str | None
    accent: str | None
    logo: str | None
    recurs_from: dt.datetime | None
    now: dt.datetime
    prices: list[PricePoint]
    sizes: dict[str, PhotoSizes]


class ReadOrganizer(Command):
    """Asks for the next events of an organizer, after an event with this date and id."""

    slug: str
    after: tuple[dt.datetime, int] | None


class EventCard(Struct):
    """An event in the list of an organizer."""

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    location_name: str | None
    address: str | None
    pricing_mode: PricingMode
    currency: str
    current_price: int | None
    left: int
    room: int
    photo: str | None


class OrganizerContent(Struct):
    """The content of the page of an organizer: its next events.

    name     None while the organizer has not confirmed its address, as are its words about itself, accent and logo
    logo     the file of its logo
    more     whether there are events after these
    """

    name: str | None
    slug: str
    about: str | None
    accent: str | None
    logo: str | None
    events: list[EventCard]
    sizes: dict[str, PhotoSizes]
    more: bool
