"""What an organizer may do with the payments of one event: look at them, and give money back by hand."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.ids import EventId
from holdfast.events.payments.disputes import Blocked
from holdfast.events.payments.disputes import State as DisputeState
from holdfast.events.processor.currencies import rules_of
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import PublicId
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.said import said

State = Literal["opening", "open", "paid", "ended", "refused"]

BLOCKED: Mapping[Blocked, str] = {
    "open": said("must wait: the holder of the card disputes the payment, and the bank has not decided yet"),
    "lost": said("cannot go back: the bank of the card has taken the money back already"),
}
"""Why no money is given back: whoever disputes a payment would have it twice."""


class LookAtPayments(Command):
    """Asks for the payments of one person for one event."""

    event_id: EventId
    user_id: PublicId


class RefundPayment(Command):
    """Asks to give money back that a person paid for an event, in minor units."""

    event_id: EventId
    user_id: PublicId
    payment_id: int
    amount: Annotated[int, Meta(ge=1, le=2**53 - 1)]


class Refunded(Struct):
    """Money that goes back, or has gone back."""

    amount: int
    reason: Literal["no_seat", "seat_lost", "event_cancelled", "by_organizer"]
    state: Literal["wanted", "made", "refused"]
    error: str | None
    inserted_at: dt.datetime


class Disputed(Struct):
    """A dispute about a payment. The amount is None until the processor was asked."""

    state: DisputeState
    amount: int | None
    inserted_at: dt.datetime


class Made(Struct):
    """A payment as its organizer sees it.

    fee         what the platform keeps of it
    refunded    the sum of its refunds, also of those that are still to be made
    kept        what stays by the rule for cancellations
    blocked     why nothing can be given back: a dispute is not decided, or was lost
    """

    id: int
    amount: int
    fee: int
    currency: str
    state: State
    error: str | None
    intent_id: str | None
    inserted_at: dt.datetime
    ends_at: dt.datetime
    paid_at: dt.datetime | None
    refunded: int
    kept: int
    blocked: Blocked | None
    refunds: list[Refunded]
    disputes: list[Disputed]

    @property
    def refundable(self) -> int:
        """What can still be given back."""
        return self.amount - self.refunded if self.state == "paid" and self.blocked is None else 0


class GivenBack(Struct):
    """A refund is on its way. `left`: what can still be given back."""

    left: int


@refuses(NOT_FOUND, FORBIDDEN)
async def look(reader: Reader, caller: Caller, command: LookAtPayments) -> list[Made]:
    """Read the payments of one person for one event, the newest first."""
    await events.find(reader, caller, command.event_id)
    rows = await reader.tuples(
        """
        select payments.id, amount, fee, currency, state::text, error, intent_id, payments.inserted_at, ends_at,
               paid_at, refunded, kept, blocked_by_dispute(intent_id)
          from payments join users on users.id = user_id
         where event_id = %(event_id)s and public_id = %(user_id)s order by payments.id desc
        """,
        {"event_id": command.event_id, "user_id": command.user_id},
    )
    refunds = await reader.tuples(
        """
        select payment_id, amount, reason, state::text, error, inserted_at from refunds
         where payment_id = any(%(ids)s) order by id
        """,
        {"ids": [row[0] for row in rows]},
    )
    disputes = await reader.tuples(
        """
        select intent_id, state::text, amount, inserted_at from disputes
         where intent_id = any(%(ids)s) order by id
        """,
        {"ids": [row[6] for row in rows if row[6]]},
    )
    return [
        Made(
            *row,
            refunds=[Refunded(*each) for id, *each in refunds if id == row[0]],
            disputes=[Disputed(*each) for id, *each in disputes if id == row[6]],
        )
        for row in rows
    ]


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED)
async def refund(tx: Tx, caller: Caller, command: RefundPayment) -> GivenBack:
    """Give back a part of a payment, or all that is left of it. The person keeps the seat."""
    await events.lock(tx, caller, command.event_id)
    found = await tx.tuples(
        """
        select amount - refunded, currency, blocked_by_dispute(intent_id) from payments
         where id = %(payment_id)s and state = 'paid' and event_id = %(event_id)s
           and user_id = (select id from users where public_id = %(user_id)s)
           for no key update
        """,
        {"payment_id": command.payment_id, "event_id": command.event_id, "user_id": command.user_id},
    )
    if not found:
        raise NOT_FOUND("This person has made no such payment for this event.")
    [(left, currency, blocked)] = found
    if blocked:
        raise invalid({"amount": [BLOCKED[blocked]]})
    if command.amount > left:
        raise invalid({"amount": [f"must be at most what is left of the payment, {left}"]})
    unit = rules_of(currency).unit
    if command.amount % unit:
        raise invalid({"amount": [f"must be a multiple of {unit}, as every amount in {currency}"]})
    await tx.run(
        """
        with given as (update payments set kept = least(kept, amount - refunded - %(amount)s) where id = %(id)s)
        insert into refunds (payment_id, amount, reason) values (%(id)s, %(amount)s, 'by_organizer')
        """,
        {"id": command.payment_id, "amount": command.amount},
    )
    return GivenBack(left - command.amount)
