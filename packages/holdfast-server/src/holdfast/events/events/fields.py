"""The fields of events: their types, bounds and descriptions, and the rules over two of them."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta

from holdfast.kit.contract.command import Minor, NotBlank, Timestamp
from holdfast.kit.contract.messages import FieldName, message

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

HALF_PIN = message("is half of a map pin: give latitude and longitude, or none of them")
OPENS_TOO_LATE = message("must be earlier than %(field)s", field=FieldName("datetime"))
OPENS_BEFORE = message("must be later than %(field)s", field=FieldName("opens_at"))
ENDS_TOO_EARLY = message("must be later than %(field)s", field=FieldName("datetime"))


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
