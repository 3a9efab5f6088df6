"""The list of an organizer's events in the console: those to come or those that are over, with what they brought in."""

import datetime as dt
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.events.model import STATUS, EventStatus
from holdfast.events.events.overview import MAX_COUNTED
from holdfast.events.photos.model import PhotoSizes
from holdfast.events.photos.sizes import find_sizes
from holdfast.events.pricing.model import PricingMode
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import Operation, read

PAGE_SIZE = 15
MAX_SEARCH_CHARACTERS = 100

Period = Literal["upcoming", "past"]


class ListOwnEvents(Command):
    """Asks for events of the organizer: those to come, the soonest first, or those that are over, the latest first.

    text    a part of the title, in any case
    """

    period: Period = "upcoming"
    text: Annotated[str, Meta(max_length=MAX_SEARCH_CHARACTERS)] = ""
    offset: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class OwnEvent(Struct):
    """An event in the list.

    photo    the key of its first photo
    """

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    status: EventStatus
    published: bool
    capacity: int
    registered_count: int
    waitlisted_count: int
    pricing_mode: PricingMode
    currency: str
    current_price: int | None
    photo: str | None

    @property
    def is_on_sale(self) -> bool:
        return self.pricing_mode != "free" and self.published and self.status in ("active", "full")

    @property
    def needs_seats(self) -> bool:
        """Whether people wait while no seat is free: more seats would help them."""
        return self.status == "full" and self.waitlisted_count > 0


class OwnEvents(Struct):
    """A part of the list.

    has_any               whether the organizer has any event, in this list or not
    is_without_payouts    whether one of these events is on sale, and nothing can be paid to the organizer
    revenue               what was paid by card for an event in its currency and not given back, by id
    """

    events: list[OwnEvent]
    sizes: dict[str, PhotoSizes]
    more: bool
    has_any: bool
    is_without_payouts: bool
    revenue: dict[int, int]


_COLUMNS: LiteralString = f"""
    select id, title, datetime, end_datetime as ends_at, timezone, {STATUS} as status, published, capacity,
           registered_count, waitlisted_count, pricing_mode, currency, current_price, image_keys[1] as photo
      from events
     where organizer_id = %(organizer_id)s and fold_text(title) like all ((select search_patterns(%(text)s))::text[])
"""

_LISTS: dict[Period, LiteralString] = {
    "upcoming": f"{_COLUMNS} and datetime > now() order by datetime, id limit %(limit)s offset %(offset)s",
    "past": f"{_COLUMNS} and datetime <= now() order by datetime desc, id desc limit %(limit)s offset %(offset)s",
}

_REVENUE: LiteralString = """
    select event_id, sum(amount - refunded)::bigint
      from unnest(%(ids)s::bigint[], %(currencies)s::text[]) as listed (id, currency)
     cross join lateral (select event_id, amount, refunded from payments
                          where event_id = listed.id and currency = listed.currency and state = 'paid') as payment
     group by event_id
"""

_SUMMARY: LiteralString = """
    select exists (select from events where organizer_id = %(organizer_id)s),
           (select payouts_ready from users where id = %(organizer_id)s)
"""


async def list_own(reader: Reader, caller: Caller, command: ListOwnEvents) -> OwnEvents:
    """Read a part of the organizer's events."""
    values = {
        "organizer_id": caller.tenant,
        "text": command.text,
        "limit": PAGE_SIZE + 1,
        "offset": command.offset,
    }
    rows = await reader.rows(OwnEvent, _LISTS[command.period], values)
    events = rows[:PAGE_SIZE]
    keys = [event.photo for event in events if event.photo]
    sizes = await find_sizes(reader, keys) if keys else {}
    [(has_any, payouts_ready)] = await reader.tuples(_SUMMARY, {"organizer_id": caller.tenant})
    is_without_payouts = not payouts_ready and any(event.is_on_sale for event in events)
    # The payments of a very large event are not added up for a list.
    with_price = [event for event in events if event.pricing_mode != "free" and event.registered_count <= MAX_COUNTED]
    arguments = {"ids": [event.id for event in with_price], "currencies": [event.currency for event in with_price]}
    revenue = dict(await reader.tuples(_REVENUE, arguments)) if with_price else {}
    return OwnEvents(events, sizes, len(rows) > PAGE_SIZE, has_any, is_without_payouts, revenue)


LIST_OWN = Operation("list_own_events", None, read(list_own))
OPERATIONS = (LIST_OWN,)
"""An operation of the console alone: it has no route of the API and no tool."""
