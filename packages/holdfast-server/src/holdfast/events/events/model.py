"""Events: their fields with types, bounds, descriptions and rules."""

import datetime as dt
from functools import lru_cache
from html import escape
from typing import Annotated, Literal, LiteralString

from msgspec import UNSET, Meta, Struct, UnsetType, field

from holdfast.events.draws.model import DrawColumns
from holdfast.events.events.struct_copies import make_copier
from holdfast.events.events.time_zones import zone_error
from holdfast.events.paths import HOST_SCRIPT, EventId, event_path
from holdfast.events.photos.model import Keys, repeated_key_error, urls
from holdfast.events.pricing.model import Currency, Payment, PricingMode, errors_of_bounds, errors_of_price, payment
from holdfast.events.processor.currencies import CURRENCIES, is_payable
from holdfast.events.settings import Settings
from holdfast.kit.contract.command import Command, Id, Minor, NotBlank, Timestamp, rule
from holdfast.kit.contract.messages import FieldName, message

HALF_PIN = message("is half of a map pin: give latitude and longitude, or none of them")
OPENS_TOO_LATE = message("must be earlier than %(field)s", field=FieldName("datetime"))
OPENS_BEFORE = message("must be later than %(field)s", field=FieldName("opens_at"))
PAST_DATE = message(
    "is in the past, so the event would be over at once; if that is meant, send %(field)s as true",
    field=FieldName("ends_registration"),
)
ENDS_TOO_EARLY = message("must be later than %(field)s", field=FieldName("datetime"))


Frequency = Annotated[Literal["none", "days", "weeks", "months", "years"], Meta(description="Unit.")]

Title = Annotated[NotBlank, Meta(min_length=1, max_length=300, description="Plain text.")]
Body = Annotated[str, Meta(min_length=1, max_length=100_000, description="Markdown; lines stay.")]
Capacity = Annotated[int, Meta(ge=1, le=2**31 - 1, description="Seats.")]
WaitingListCapacity = Annotated[int, Meta(ge=0, le=2**31 - 1, description="Places on the waiting list.")]
Interval = Annotated[int, Meta(ge=0, le=10_000, description="Every so many of them; 0 is 1.")]
Address = Annotated[Annotated[str, Meta(max_length=500)] | None, Meta(description="Street address.")]
LocationName = Annotated[Annotated[str, Meta(max_length=300)] | None, Meta(description="Name of the venue.")]
Timezone = Annotated[
    Annotated[str, Meta(max_length=64)] | None,
    Meta(description="IANA name such as Europe/Berlin; else UTC."),
]
CancellationHours = Annotated[
    int,
    Meta(
        ge=0,
        le=8760,
        description="People can cancel until so many hours before it.",
    ),
]
Latitude = Annotated[Annotated[float, Meta(ge=-90, le=90)] | None, Meta(description="Map pin.")]
Longitude = Annotated[Annotated[float, Meta(ge=-180, le=180)] | None, Meta(description="Map pin.")]
LowerBound = Annotated[Minor | None, Meta(description="Required for dynamic.")]
UpperBound = Annotated[Minor | None, Meta(description="Required for dynamic.")]
EndsAt = Annotated[Timestamp | None, Meta(description="Later than datetime.")]
OpensAt = Annotated[Timestamp | None, Meta(description="Earlier registrations are drawn.")]
Published = Annotated[bool, Meta(description="False: a draft, which only you see.")]
PublicLog = Annotated[bool, Meta(description="Publish order and volume.")]


def is_in_order(begins: dt.datetime, ends_at: dt.datetime | None) -> bool:
    """Whether an event ends later than it begins, or has no stated end."""
    return ends_at is None or begins < ends_at


def moved_end(ends_at: dt.datetime | None, begins: dt.datetime, moved_to: dt.datetime) -> dt.datetime | None:
    """The end of an event that is moved from one beginning to another, so that it takes as long as before.

    None without an end, and if the end would be after the year 9999.
    """
    try:
        return None if ends_at is None else ends_at + (moved_to - begins)
    except OverflowError:
        return None


EventStatus = Literal["active", "expired", "full", "cancelled"]
CHANGE_CHANNEL: LiteralString = "events"
"""The channel on which triggers announce the id of each event that changes."""
DETAILS_CHANNEL: LiteralString = "event_details"
"""The channel that announces the id of each event of which something has changed that only its organizer sees."""

STATUS: LiteralString = """
    case when events.cancelled_at is not null then 'cancelled'
         when events.datetime <= now() then 'expired'
         when events.registered_count >= events.capacity then 'full'
         else 'active' end"""
"""SQL for the status of a row of `events`."""


class GetEvent(Command):
    event_id: EventId


class CancelEvent(Command):
    event_id: EventId


class CreateEvent(Command):
    title: Title
    body: Body
    datetime: Timestamp
    price: Annotated[
        Minor, Meta(description="Minor units: 0 for free, at least 1 for fixed; for dynamic, the first price.")
    ]
    capacity: Capacity
    currency: Currency = "USD"
    pricing_mode: PricingMode = "fixed"
    max_price: UpperBound = None
    min_price: LowerBound = None
    organizer_id: Annotated[Id | None, Meta(description="For admin keys; else yours.")] = None
    recurrence_frequency: Frequency = "none"
    recurrence_interval: Interval = 0
    waitinglist_capacity: WaitingListCapacity = 0
    image_keys: Keys = field(default_factory=list[str])
    address: Address = None
    latitude: Latitude = None
    longitude: Longitude = None
    location_name: LocationName = None
    timezone: Timezone = None
    cancellation_hours: CancellationHours = 0
    ends_at: EndsAt = None
    published: Published = True
    public_log: PublicLog = True
    opens_at: OpensAt = None

    @rule("opens_at", "datetime")
    def _opens_earlier(self) -> str | None:
        return None if self.opens_at is None or self.opens_at < self.datetime else OPENS_TOO_LATE

    @rule("ends_at", "datetime")
    def _ends_later(self) -> str | None:
        return None if is_in_order(self.datetime, self.ends_at) else ENDS_TOO_EARLY

    @rule("timezone")
    def _timezone_is_known(self) -> str | None:
        return zone_error(self.timezone)

    @rule("currency")
    def _currency_is_supported(self) -> str | None:
        return None if self.currency in CURRENCIES else message("is not a currency the payment processor supports")

    @rule("price", "pricing_mode", "min_price", "max_price")
    def _price_fits(self) -> str | None:
        return self._mismatch("price")

    @rule("min_price", "pricing_mode", "max_price", "price")
    def _min_price_fits(self) -> str | None:
        return self._mismatch("min_price")

    @rule("max_price", "pricing_mode", "min_price", "price")
    def _max_price_fits(self) -> str | None:
        return self._mismatch("max_price")

    @rule("image_keys")
    def _each_photo_is_named_once(self) -> str | None:
        return repeated_key_error(self.image_keys)

    @rule("latitude", "longitude")
    def _latitude_has_a_longitude(self) -> str | None:
        return HALF_PIN if self.longitude is None and self.latitude is not None else None

    @rule("longitude", "latitude")
    def _longitude_has_a_latitude(self) -> str | None:
        return HALF_PIN if self.latitude is None and self.longitude is not None else None

    def _mismatch(self, field: str) -> str | None:
        bounds = errors_of_bounds(self.pricing_mode, min_price=self.min_price, max_price=self.max_price)
        messages = (errors_of_price(self.pricing_mode, self.price, self.min_price, self.max_price) | bounds).get(field)
        return messages[0] if messages else None


class UpdateEvent(Command):
    event_id: EventId
    title: Title | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    datetime: Timestamp | UnsetType = UNSET
    price: Minor | UnsetType = UNSET
    capacity: Capacity | UnsetType = UNSET
    currency: Annotated[Currency, Meta(description="Cannot change.")] | UnsetType = UNSET
    pricing_mode: Annotated[PricingMode, Meta(description="Cannot change.")] | UnsetType = UNSET
    max_price: UpperBound | UnsetType = UNSET
    min_price: LowerBound | UnsetType = UNSET
    organizer_id: Annotated[Id | UnsetType, Meta(description="Hands the event over; admin keys only.")] = UNSET
    recurrence_frequency: Frequency | UnsetType = UNSET
    recurrence_interval: Interval | UnsetType = UNSET
    waitinglist_capacity: WaitingListCapacity | UnsetType = UNSET
    image_keys: Keys | UnsetType = UNSET
    address: Address | UnsetType = UNSET
    latitude: Latitude | UnsetType = UNSET
    longitude: Longitude | UnsetType = UNSET
    location_name: LocationName | UnsetType = UNSET
    timezone: Timezone | UnsetType = UNSET
    cancellation_hours: CancellationHours | UnsetType = UNSET
    ends_at: EndsAt | UnsetType = UNSET
    published: Annotated[bool, Meta(description="False: only before the first registration.")] | UnsetType = UNSET
    public_log: PublicLog | UnsetType = UNSET
    opens_at: OpensAt | UnsetType = UNSET
    ends_registration: Annotated[bool, Meta(description="Tools: `datetime` may be past.")] = False

    @rule("timezone")
    def _timezone_is_known(self) -> str | None:
        return None if self.timezone is UNSET else zone_error(self.timezone)

    @rule("image_keys")
    def _each_photo_is_named_once(self) -> str | None:
        return None if self.image_keys is UNSET else repeated_key_error(self.image_keys)


class Deliverables(Struct):
    """What an agent hands to its organizer."""

    embed_code: str
    embed_url: str
    public_url: str


class Agent(Struct):
    """What an agent needs to know to publish the event."""

    payment: Payment
    deliverables: Deliverables
    hosted_registration_ready: Annotated[
        bool, Meta(description="False if registration is closed, or a paid event cannot be paid.")
    ]
    agent_payment_required: Literal[False] = False
    hosted_registration: Literal[True] = True
    registration_processing: Literal["sorted"] = "sorted"
    workflow: Literal["publish_public_url_or_embed_code"] = "publish_public_url_or_embed_code"


class Event(Struct):
    """An event as its organizer sees it."""

    id: int
    status: EventStatus
    address: str | None
    title: str
    body: Annotated[str, Meta(description="Markdown.")]
    datetime: Timestamp
    ends_at: Timestamp | None
    payment: Payment
    price: Minor
    cancelled_at: Timestamp | None
    capacity: int
    pricing_mode: PricingMode
    max_price: int | None
    min_price: int | None
    organizer_id: int
    recurrence_frequency: Frequency
    recurrence_interval: int
    waitinglist_capacity: int
    current_price: Annotated[int | None, Meta(description="Minor units; null for a free event.")]
    latitude: float | None
    longitude: float | None
    location_name: str | None
    image_urls: Annotated[list[str], Meta(description="In order; the first is primary.")]
    registration_count: Annotated[int, Meta(description="Seats taken, live.")]
    agent: Agent
    embed_code: Annotated[str, Meta(description="Ready-to-paste iframe of the hosted registration form.")]
    embed_url: str
    primary_image_url: str | None
    public_url: Annotated[str, Meta(description="`/organizers/<slug>/events/<event_id>`, with the address in front.")]
    timezone: str | None
    cancellation_hours: int
    published: bool
    public_log: bool
    opens_at: Annotated[Timestamp | None, Meta(description="Registrations before it are drawn by lot.")]
    waiting_room_url: Annotated[
        str | None, Meta(description="The waiting room that people go through before they can register.")
    ]


class EventRow(DrawColumns):
    """An event as it is stored, with derived columns.

    takes_entries    whether a person who registers becomes an entry of the draw, until all entries have their outcomes
    queue_id         the waiting room before it; None: it has none
    seats_passed_on  how many seats that people cancelled went to people who waited
    """

    id: int
    organizer_id: int
    title: str
    body: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    capacity: int
    waitinglist_capacity: int
    registered_count: int
    waitlisted_count: int
    seats_passed_on: int
    currency: str
    pricing_mode: PricingMode
    price: int
    min_price: int | None
    max_price: int | None
    current_price: int | None
    recurrence_frequency: Frequency
    recurrence_interval: int
    address: str | None
    location_name: str | None
    latitude: float | None
    longitude: float | None
    timezone: str | None
    cancellation_hours: int
    calendar_sequence: int
    image_keys: list[str]
    cancelled_at: dt.datetime | None
    published: bool
    public_log: bool
    takes_entries: bool
    inserted_at: dt.datetime
    queue_id: int | None
    status: EventStatus
    organizer_slug: str
    payouts_ready: bool

    @property
    def opens_at(self) -> dt.datetime | None:
        return self.draw_at

    @property
    def is_public(self) -> bool:
        """Whether others than the organizer see the event: the same condition as `is_public` below."""
        return self.published

    @property
    def takes_registrations(self) -> bool:
        """Whether one more person could get a seat or a place on the waiting list."""
        has_waitlist_left = self.status == "full" and self.waitlisted_count < self.waitinglist_capacity
        return self.is_public and (self.status == "active" or has_waitlist_left)

    def is_running(self, now: dt.datetime) -> bool:
        """Whether the event has begun, and its end is still to come. Without an end it is over when it begins.

        Its status is `expired` from its beginning: registration is closed.
        """
        return self.status == "expired" and self.ends_at is not None and now < self.ends_at


EVENT_COLUMNS: LiteralString = f"""
    events.draw_at, events.draw_round, events.draw_round_at, events.draw_entries, events.drawn_at, events.draw_void_at,
    coalesce(events.draw_at <= now(), false) as is_closed,
    events.id, events.organizer_id, events.title, events.body, events.datetime, events.end_datetime as ends_at,
    events.capacity, events.waitinglist_capacity, events.registered_count, events.waitlisted_count,
    events.seats_passed_on, events.currency,
    events.pricing_mode, events.price, events.min_price, events.max_price, events.current_price,
    events.recurrence_frequency, events.recurrence_interval, events.address, events.location_name, events.latitude,
    events.longitude, events.timezone, events.cancellation_hours, events.calendar_sequence, events.image_keys,
    events.cancelled_at, events.published, events.public_log, events.takes_entries, events.inserted_at,
    events.queue_id,
    {STATUS} as status,
    organizers.slug as organizer_slug, organizers.payouts_ready"""
"""SQL for the columns of an `EventRow`, of the tables `events` and, for its organizer, `organizers`.

The columns are in the order of its fields, since a row is made fastest then.
"""


def to_api(row: EventRow, settings: Settings) -> Event:
    """The public form of a stored event."""
    public_url = settings.base_url + event_path(row.organizer_slug, row.id)
    embed_url = f"{settings.base_url}/events/{row.id}/embed"
    base_url = _escaped(settings.base_url)
    embed_code = (
        f'<iframe src="{base_url}/events/{row.id}/embed" title="{escape(row.title)}" '
        'width="100%" height="640" style="border:0;color-scheme:light" loading="lazy"></iframe>\n'
        f'<script src="{base_url}{HOST_SCRIPT}" async></script>'
    )
    image_urls = urls(row.image_keys, settings)
    ready = row.payouts_ready and settings.takes_payments
    can_pay = row.pricing_mode == "free" or is_payable(row.current_price or 0, row.currency)
    pays = payment(row.pricing_mode, ready, settings.platform_fee_percent, is_payable=can_pay)
    return _event_of(
        row,
        payment=pays,
        image_urls=image_urls,
        registration_count=row.registered_count,
        agent=Agent(
            payment=pays,
            deliverables=Deliverables(embed_code, embed_url, public_url),
            hosted_registration_ready=row.takes_registrations and pays.status != "unavailable",
        ),
        embed_code=embed_code,
        embed_url=embed_url,
        primary_image_url=image_urls[0] if image_urls else None,
        public_url=public_url,
        waiting_room_url=None if row.queue_id is None else f"{settings.base_url}/queues/{row.queue_id}",
    )


_event_of = make_copier(EventRow, Event)


@lru_cache(16)
def _escaped(base_url: str) -> str:
    return escape(base_url)


def is_public(events: LiteralString = "events") -> LiteralString:
    """SQL condition: an event is public. `events` is the name of the table in the statement.

    It decides everything that others than the organizer see of an event. An event is public from when it is published
    until it becomes a draft again. It stays public when it is cancelled or over, and when its organizer is erased. See
    decision 92.
    """
    return f"{events}.published"
