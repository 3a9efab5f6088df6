"""Registrations: the person, the time of arrival, and the status."""

from datetime import datetime, timedelta
from typing import Annotated, Literal, LiteralString

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.accounts.addresses import Email, address_error
from holdfast.events.paths import EventId
from holdfast.events.users.model import IS_KNOWN, EmailOrPlaceholder, Name, PublicId
from holdfast.kit.contract.command import Command, Minor, rule
from holdfast.kit.postgres.pagination import OffsetPage
from holdfast_verify.formats.receipts import Receipt

PERSON_NAME: LiteralString = f"coalesce(registrations.name, case when {IS_KNOWN} then users.name end)"
"""The name of the person in a row of `registrations` and `users`, as the organizer in the column `seen_by` knows it."""

MAX_NAME_CHARACTERS = 100
"""The most characters of a name that is given with a registration."""

UNDO_SECONDS = 30
"""Seconds in which a person can undo that a registration is cancelled."""

RegistrationStatus = Literal["pending", "in_draw", "held", "registered", "waitlisted", "rejected"]
AcceptedStatus = Literal["registered", "waitlisted"]
ReceivedAt = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, description="Time of arrival, UTC, in microseconds.")
]


class ListRegistrations(OffsetPage):
    event_id: EventId | None = None


class GetRegistration(Command):
    event_id: EventId
    user_id: PublicId


class AcceptRegistration(Command):
    event_id: EventId
    user_id: Annotated[PublicId | None, Meta(description="A person registered before; or else `email`.")] = None
    email: Annotated[Email | None, Meta(description="Finds or creates an account; or else `user_id`.")] = None
    notify: Annotated[bool | None, Meta(description="Mail the person; default: the operator's.")] = None
    amount_paid: Annotated[Minor | None, Meta(description="Minor units; defaults to the current price.")] = None
    queue_token: Annotated[str | None, Meta(description="A release; used up.")] = None

    @rule("email")
    def _can_get_mails(self) -> str | None:
        return address_error(self.email) if self.email else None

    @rule("user_id", "email")
    def _exactly_one_person(self) -> str | None:
        if (self.user_id is None) == (self.email is None):
            return "give exactly one of user_id and email"
        return None


class AddPerson(Command):
    """Asks to register a person by hand.

    name      as `clean_name` returns it
    notify    whether the person gets mails about it
    """

    event_id: EventId
    email: Email
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARACTERS)] | None
    notify: bool

    @rule("email")
    def _can_get_mails(self) -> str | None:
        return address_error(self.email)


class UpdateRegistration(Command):
    event_id: EventId
    user_id: PublicId
    status: Annotated[AcceptedStatus | UnsetType, Meta(description="A seat or the waiting list.")] = UNSET
    amount_paid: Minor | UnsetType = UNSET


class DeleteRegistration(Command):
    event_id: EventId
    user_id: PublicId


class Registration(Struct):
    """A settled registration that holds a seat or a place on the waiting list."""

    id: Annotated[str, Meta(description="`<event_id>-<user_public_id>`")]
    status: AcceptedStatus
    event_id: int
    amount_paid: Minor
    user_id: PublicId
    received_at: ReceivedAt
    email: EmailOrPlaceholder
    name: Name


class RegistrationNextStep(Struct):
    """What to do next."""

    url: str
    action: Literal["poll_status"] = "poll_status"
    description: str = (
        "GET this address, or call get_registration with the event_id and user_id at its end, until it answers 200; "
        "404 registration_pending means it still waits."
    )


class AcceptedRegistration(Struct):
    """Stored, not yet seated."""

    next: RegistrationNextStep
    message: str = "The registration was received. It is settled in order of arrival."
    status: Literal["accepted"] = "accepted"
    receipt: Receipt | UnsetType = UNSET


DRAWN = (
    "The registration was received. Places of this event are drawn: an entry from before opens_at gets its place by "
    "lot, and later ones come after all of these."
)
"""The message of `AcceptedRegistration` when the event takes entries of a draw."""

MAILS_WAIT = (
    " The organizer has not confirmed its e-mail address yet: mails about its events wait until it signs in with a "
    "link sent to that address, for seven days."
)
"""The end of the message of `AcceptedRegistration` when the organizer has not proved its address."""


class RegistrationMatch(Struct):
    """The registration of one person for one event; `status` is None if there is none.

    log_number    its number in the order of arrivals, under which the log of the event has it; None: it is in no log
    """

    organizer_id: int
    event_id: int
    public_id: str
    status: Literal["pending", "in_draw", "held", "registered", "waitlisted", "rejected"] | None
    amount_paid: int | None
    received_at: str | None
    reason: str | None
    email: str | None
    name: str | None
    log_number: int | None


def cancellation_deadline(
    status: str | None, begins: datetime, cancellation_hours: int, promoted_at: datetime | None
) -> datetime:
    """The time from which a person can no longer cancel a seat: `cancellation_hours` before the event begins.

    A person who was promoted from the waiting list after that time can cancel until the event begins. A person without
    a seat can cancel until then too.
    """
    if status != "registered":
        return begins
    until = begins - timedelta(hours=cancellation_hours)
    return begins if promoted_at is not None and promoted_at > until else until


def refund_deadline(begins: datetime, refund_days: int, cancellation: datetime) -> datetime:
    """The time until which a cancellation is refunded in full: `refund_days` before the event begins.

    cancellation    the deadline for the cancellation itself: if it is earlier, it counts
    """
    return min(begins - timedelta(days=refund_days), cancellation)
