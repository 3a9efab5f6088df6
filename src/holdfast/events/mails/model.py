"""Mails about registrations: their kinds, what is stored of each, and whether it is still true when it is written."""

import datetime as dt
from typing import Literal

from msgspec import Struct

from holdfast.accounts.signin.mail import SignInMail
from holdfast.events.registrations.cancellation import cancels_until
from holdfast.kit.pages.link_mail import LinkMail

Kind = Literal[
    "seat",
    "waitlisted",
    "promoted",
    "refused",
    "removed",
    "seat_again",
    "waitlisted_again",
    "event_changed",
    "event_cancelled",
    "payment_due",
    "refund",
]
"""Those that begin with `event` tell of a change of the event; those that end in `again` were asked for by the form."""

ParagraphKind = Literal[
    "seat",
    "waitlisted",
    "promoted",
    "payment_due",
    "refused",
    "removed",
    "refund",
    "event_changed",
    "event_cancelled",
]
"""The kinds of mails to which an organizer can add a paragraph."""

OF_PAID: frozenset[Kind] = frozenset({"payment_due", "refund"})
"""They are sent only about events with a price."""

STANDING: dict[Kind, tuple[str, ...]] = {
    "seat": ("registered",),
    "promoted": ("registered",),
    "waitlisted": ("waitlisted",),
    "refused": ("rejected",),
    "seat_again": ("registered",),
    "waitlisted_again": ("waitlisted",),
    "event_changed": ("registered", "waitlisted"),
    "event_cancelled": ("registered", "waitlisted", "held"),
    "payment_due": ("held",),
}
"""How a registration must stand for a mail about it to be true."""


class Arguments(Struct):
    """What a mail was caused with.

    user_id    the public id of the person
    arrival    of the registration: who registers anew has another one
    amount     what goes back of what was paid, in minor units
    currency   of that; None: that of the event
    """

    event_id: int
    user_id: str
    arrival: int
    name: str | None = None
    language: str | None = None
    reason: str | None = None
    amount: int | None = None
    currency: str | None = None


class Known(Struct):
    """What a mail says of its event and registration, as they are when it is written.

    standing    how the registration stands; None: there is none
    is_newest   whether no later mail of its kind waits in its thread
    now         the time of the database
    paragraph   what the organizer adds, as it was typed
    """

    id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    location_name: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    currency: str
    cancellation_hours: int
    calendar_sequence: int
    cancelled_at: dt.datetime | None
    organizer_name: str
    organizer_slug: str
    standing: str | None
    arrival: int | None
    notify: bool | None
    amount_paid: int | None
    amount_due: int | None
    held_until: dt.datetime | None
    promoted_at: dt.datetime | None
    is_newest: bool
    now: dt.datetime
    paragraph: str | None

    @property
    def until(self) -> dt.datetime:
        """Until when the person can cancel."""
        return cancels_until(self.standing, self.datetime, self.cancellation_hours, self.promoted_at)


class Order(Struct, tag="registration"):
    """A mail that is to be written, with all that it says.

    recipient     as mail servers are told it
    message_id    its name
    caused_at     when the transaction that caused it began
    own, page     the addresses of the person's own page, and of the page of the event
    """

    recipient: str
    message_id: str
    caused_at: dt.datetime
    kind: Kind
    caused: Arguments
    known: Known
    own: str
    page: str


class DataMail(LinkMail, tag="own_data"):
    """The mail with a link to one's own data."""


class Portion(Struct):
    """Mails that are written together, and what they say of the service.

    sender       from whom they come
    mail_from    the same, if it was set; empty: mails only become files
    """

    base_url: str
    sender: str
    mail_from: str
    orders: list[Order | SignInMail | DataMail]


def paragraph_of(kind: Kind) -> ParagraphKind:
    """The kind whose paragraph a mail has: a mail that tells something again has the same one."""
    match kind:
        case "seat_again":
            return "seat"
        case "waitlisted_again":
            return "waitlisted"
        case _:
            return kind


def is_true(kind: Kind, caused: Arguments, known: Known) -> bool:
    """Whether a mail is still true, and wanted."""
    if kind == "refund":
        return True
    if kind == "removed":
        return known.standing is None and known.cancelled_at is None
    if (known.arrival, known.notify) != (caused.arrival, True) or known.standing not in STANDING[kind]:
        return False
    if kind == "event_cancelled":
        return known.cancelled_at is not None
    if kind == "refused":
        return True
    if kind == "event_changed" and not (known.is_newest and known.now < known.datetime):
        return False
    return known.cancelled_at is None
