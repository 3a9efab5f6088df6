"""The messages of webhooks of the events service: their types, and what each says.

Triggers store them (`schema/triggers/`). They are thin: ids, numbers and times. The rest is read over the API.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.kit.contract.messages import translatable
from holdfast.kit.webhooks.model import MessageType

Status = Literal["registered", "held", "waitlisted", "rejected"]
UserId = Annotated[str, Meta(description="The person: the last part of the path of the registration.")]
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, description="UTC.")]


class ChangedRegistration(Struct, frozen=True):
    """A registration whose status has changed. `GET /api/registrations/{event_id}/{user_id}` has the rest."""

    event_id: int
    user_id: UserId
    status: Status
    was: Annotated[str, Meta(description="The status before; `pending` or `in_draw`: it was not settled.")]
    reason: Annotated[str | None, Meta(description="Why, if the status does not say it.")]
    amount_paid: Annotated[int, Meta(description="In minor units.")]


class RemovedRegistration(Struct, frozen=True):
    """A registration that does not exist any more."""

    event_id: int
    user_id: UserId
    was: str


class CheckedInPerson(Struct, frozen=True):
    """A person who has come in."""

    event_id: int
    user_id: UserId
    device: Annotated[str, Meta(description="The name of the device at the door.")]
    at: Moment


class Refund(Struct, frozen=True):
    """Money that the payment processor has given back."""

    event_id: int
    user_id: UserId
    amount: Annotated[int, Meta(description="In minor units.")]
    currency: str
    reason: Literal["no_seat", "seat_lost", "event_cancelled", "by_organizer"]


class ChangedEvent(Struct, frozen=True):
    """An event as it was when the message was stored. `GET /api/events/{event_id}` has the rest."""

    event_id: int
    title: str
    datetime: Moment
    capacity: int
    registered_count: int
    waitlisted_count: int


class ChangedQueue(Struct, frozen=True):
    """A waiting room as it was when the message was stored. `GET /api/queues/{queue_id}` has the rest."""

    queue_id: int
    title: str
    event_id: Annotated[int | None, Meta(description="The event for which released visitors register.")]
    starts_at: Annotated[Moment | None, Meta(description="When releases begin.")]
    released: Annotated[int, Meta(description="How many visitors were released so far.")]


class ConnectedApp(Struct, frozen=True):
    """An app or agent that may act for the organizer from now on."""

    client_id: Annotated[str, Meta(description="As OAuth knows it.")]
    name: Annotated[str | None, Meta(description="As the app calls itself.")]
    scopes: Annotated[Sequence[str], Meta(description="What the organizer has allowed.")]


class RevokedKey(Struct, frozen=True):
    """An API key that no longer works."""

    key_id: int
    name: Annotated[str, Meta(description="As the organizer named it.")]


_SEAT = ChangedRegistration(1, "u7Qk2xYd", "registered", "pending", None, 0)
_EVENT = ChangedEvent(1, "Evening of jazz", "2027-05-01T18:00:00.000000Z", 80, 80, 3)

MESSAGES = (
    MessageType(
        "registration.settled",
        translatable("A new registration has its result: a seat, a place on the waiting list, or no place."),
        _SEAT,
    ),
    MessageType(
        "registration.promoted",
        translatable("A registration moved up from the waiting list."),
        ChangedRegistration(1, "u7Qk2xYd", "held", "waitlisted", None, 0),
    ),
    MessageType(
        "registration.paid",
        translatable("A seat that was held was paid."),
        ChangedRegistration(1, "u7Qk2xYd", "registered", "held", None, 1250),
    ),
    MessageType(
        "registration.moved",
        translatable("A person lost a seat or a place on the waiting list. The registration is kept."),
        ChangedRegistration(1, "u7Qk2xYd", "waitlisted", "registered", None, 0),
    ),
    MessageType(
        "registration.removed",
        translatable("A registration was deleted."),
        RemovedRegistration(1, "u7Qk2xYd", "registered"),
    ),
    MessageType(
        "registration.checked_in",
        translatable("A person came in: the first scan of the registration."),
        CheckedInPerson(1, "u7Qk2xYd", "Door 1", "2027-05-01T17:42:10.000000Z"),
    ),
    MessageType(
        "registration.refunded",
        translatable("A refund was made."),
        Refund(1, "u7Qk2xYd", 1250, "EUR", "event_cancelled"),
    ),
    MessageType("event.created", translatable("An event was published."), _EVENT),
    MessageType("event.changed", translatable("Something that the page of an event says was changed."), _EVENT),
    MessageType("event.cancelled", translatable("An event was cancelled."), _EVENT),
    MessageType("event.full", translatable("The last seat of an event was taken."), _EVENT),
    MessageType("event.available", translatable("An event that was full has a free seat."), _EVENT),
    MessageType(
        "queue.opened",
        translatable("A waiting room takes visitors: it is new, or no longer paused or ended."),
        ChangedQueue(5, "Evening of jazz", 1, "2027-04-01T08:00:00.000000Z", 0),
    ),
    MessageType(
        "queue.drained",
        translatable("The last visitor who waited in a waiting room was released."),
        ChangedQueue(5, "Evening of jazz", 1, "2027-04-01T08:00:00.000000Z", 1840),
    ),
    MessageType(
        "app.connected",
        translatable("An app was allowed to act for you."),
        ConnectedApp("client_q1Vx0oCzJ3mS8tYb2LkN4w", "Agent", ("read_events", "register")),
    ),
    MessageType("key.revoked", translatable("An API key was revoked."), RevokedKey(3, "Shop")),
)
