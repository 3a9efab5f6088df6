"""The content of the public pages: events and organizers."""

import datetime as dt

from msgspec import Struct

from holdfast.events.draws.model import DrawCheck, DrawStatus
from holdfast.events.events.model import EventRow
from holdfast.events.paths import EventId
from holdfast.events.photos.model import PhotoSizes
from holdfast.events.pricing.model import PricePoint, PricingMode
from holdfast.events.queues.event_queue import EventQueue
from holdfast.events.texts.rendered_text import RenderedText
from holdfast.kit.contract.command import Command


class PlaceCounts:
    """The free places of a struct with the numbers of an event.

    left             seats
    waitlist_left    places on the waiting list
    """

    __slots__ = ()

    capacity: int
    registered_count: int
    waitinglist_capacity: int
    waitlisted_count: int

    @property
    def left(self) -> int:
        return max(0, self.capacity - self.registered_count)

    @property
    def waitlist_left(self) -> int:
        return max(0, self.waitinglist_capacity - self.waitlisted_count)

    @property
    def takes_registrations(self) -> bool:
        return bool(self.left or self.waitlist_left)


class ReadEvent(Command):
    """Asks for the content of the page of an event. `is_preview`: also of a draft, for a visitor with its link."""

    event_id: EventId
    is_preview: bool = False


class Opening(Struct, frozen=True):
    """The draw with which an event opens.

    at         when the list of entries closes
    round      the round of the beacon that draws it, which is due at `round_at`
    entries    of a frozen list: how many entries it has
    confirmed  of a closed list: how many of them are confirmed
    """

    status: DrawStatus
    at: dt.datetime
    round: int
    round_at: dt.datetime
    entries: int | None
    confirmed: int | None


class EventContent(Struct):
    """The content of the page of an event.

    organizer_name    None while the organizer has not confirmed its address
    accent, logo      the accent and the file of the logo of the organizer, or None
    recurs_from       the first date of its series
    prices            the last prices of a dynamic price, oldest first
    text              its text as HTML, if it is stored
    sizes             the sizes of its photos by key, for photos that have them
    now               the time of the database
    version           see `LiveEventFacts.version`
    numbered          how many registrations are numbered in its public log; None: it has none
    opening           the draw with which it opens; None: it has none
    queue             the waiting room before it; None: it has none
    check             what the drawn order is computed from; None: it is not drawn
    refund_days       a cancellation at least this many days before the event is refunded in full, a later one not at
                      all
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
    version: str
    numbered: int | None
    opening: Opening | None
    queue: EventQueue | None
    check: DrawCheck | None
    refund_days: int


class ReadOrganizer(Command):
    """Asks for events of an organizer.

    after     the date and the id of an event: only those that come after it
    before    the date and the id of an event: only past ones before it
    """

    slug: str
    after: tuple[dt.datetime, int] | None = None
    before: tuple[dt.datetime, int] | None = None


class ReadFeed(Command):
    """Asks for the events in the feeds of an organizer."""

    slug: str


class FeedEvent(Struct):
    """An event in the feeds of its organizer."""

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    location_name: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    calendar_sequence: int
    cancelled_at: dt.datetime | None
    inserted_at: dt.datetime


class FeedContent(Struct):
    """The content of the feeds of an organizer. `name`: None while the organizer has not confirmed its address."""

    name: str | None
    slug: str
    events: list[FeedEvent]
    now: dt.datetime


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
    waitlist_left: int
    photo: str | None


class OrganizerContent(Struct):
    """The content of the page of an organizer: its next events, and the last of those that are past.

    name               None while the organizer has not confirmed its address, as are its words about itself, accent and
                       logo
    logo               the file of its logo
    more, more_past    whether there are later and earlier events than these
    """

    name: str | None
    slug: str
    about: str | None
    accent: str | None
    logo: str | None
    events: list[EventCard]
    past: list[EventCard]
    sizes: dict[str, PhotoSizes]
    more: bool
    more_past: bool
