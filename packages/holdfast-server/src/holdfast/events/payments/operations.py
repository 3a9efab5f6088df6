"""The operations of an organizer on the payments of one event: the list, the payer of one, and refunds by hand."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow
from holdfast.events.paths import EventId
from holdfast.events.payments.refunds import RefundBlock, RefundStatus, StoredDisputeStatus
from holdfast.events.processor.currencies import rules_of
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.held_seats import PaymentStatus
from holdfast.events.users.model import PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, invalid, refuses

BLOCK_MESSAGES: Mapping[RefundBlock, str] = {
    "open": message("must wait: the holder of the card disputes the payment, and the bank has not decided yet"),
    "lost": message("cannot go back: the bank of the card has taken the money back already"),
}
"""Messages why no refund is made: a person who disputes a payment would get the money twice."""


class ListPersonPayments(Command):
    """Asks for the payments of one person for one event."""

    event_id: EventId
    user_id: PublicId


class RefundPayment(Command):
    """Asks to refund money that a person paid for an event, in minor units."""

    event_id: EventId
    user_id: PublicId
    payment_id: int
    amount: Annotated[int, Meta(ge=1, le=2**53 - 1)]


class RefundView(Struct):
    """A refund that was made or is to be made."""

    amount: int
    reason: Literal["no_seat", "seat_lost", "event_cancelled", "by_organizer"]
    status: RefundStatus
    error: str | None
    inserted_at: dt.datetime


class DisputeView(Struct):
    """A dispute about a payment. The amount is None until it is read from the processor."""

    status: StoredDisputeStatus
    amount: int | None
    inserted_at: dt.datetime


class PaymentView(Struct):
    """A payment as its organizer sees it.

    fee         the share of the platform
    refunded    the sum of its refunds, also of those that are still to be made
    kept        the amount that stays with the organizer by the rule for cancellations
    blocked     why nothing can be refunded: a dispute is not decided, or was lost
    """

    id: int
    amount: int
    fee: int
    currency: str
    status: PaymentStatus
    error: str | None
    intent_id: str | None
    inserted_at: dt.datetime
    ends_at: dt.datetime
    paid_at: dt.datetime | None
    refunded: int
    kept: int
    blocked: RefundBlock | None
    refunds: list[RefundView] = []
    disputes: list[DisputeView] = []

    @property
    def refundable(self) -> int:
        """The amount that can still be refunded."""
        return self.amount - self.refunded if self.status == "paid" and self.blocked is None else 0

    @property
    def net_fee(self) -> int:
        """The fee without the share that goes back with refunds, rounded as `_NET_FEE` is."""
        return self.fee - (2 * self.fee * self.refunded + self.amount) // (2 * self.amount)

    @property
    def net(self) -> int:
        """What stays with the organizer."""
        return self.amount - self.refunded - self.net_fee


class RefundResult(Struct):
    """A refund is on its way. `left`: the amount that can still be refunded."""

    left: int


@refuses(NOT_FOUND, FORBIDDEN)
async def list_payments(reader: Reader, caller: Caller, command: ListPersonPayments) -> list[PaymentView]:
    """Read the payments of one person for one event, the newest first."""
    await events.find(reader, caller, command.event_id)
    payments = await reader.rows(
        PaymentView,
        """
        select payments.id, amount, fee, currency, state::text as status, error, intent_id, payments.inserted_at,
               ends_at, paid_at, refunded, kept, blocked_by_dispute(intent_id) as blocked
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
        {"ids": [payment.id for payment in payments]},
    )
    disputes = await reader.tuples(
        """
        select intent_id, state::text, amount, inserted_at from disputes
         where intent_id = any(%(ids)s) order by id
        """,
        {"ids": [payment.intent_id for payment in payments if payment.intent_id]},
    )
    for payment in payments:
        payment.refunds = [RefundView(*refund) for id, *refund in refunds if id == payment.id]
        payment.disputes = [DisputeView(*dispute) for id, *dispute in disputes if id == payment.intent_id]
    return payments


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED)
async def refund(tx: Tx, caller: Caller, command: RefundPayment) -> RefundResult:
    """Refund a part of a payment, or all that is left of it. The person keeps the seat."""
    await events.lock(tx, caller, command.event_id)
    rows = await tx.tuples(
        """
        select amount - refunded, currency, blocked_by_dispute(intent_id) from payments
         where id = %(payment_id)s and state = 'paid' and event_id = %(event_id)s
           and user_id = (select id from users where public_id = %(user_id)s)
           for no key update
        """,
        {"payment_id": command.payment_id, "event_id": command.event_id, "user_id": command.user_id},
    )
    if not rows:
        raise NOT_FOUND("This person has made no such payment for this event.")
    [(amount_left, currency, blocked)] = rows
    if blocked:
        raise invalid({"amount": [BLOCK_MESSAGES[blocked]]})
    if command.amount > amount_left:
        raise invalid({"amount": [f"must be at most what is left of the payment, {amount_left}"]})
    unit = rules_of(currency).unit
    if command.amount % unit:
        raise invalid({"amount": [f"must be a multiple of {unit}, as every amount in {currency}"]})
    await tx.run(
        """
        with payment as (update payments set kept = least(kept, amount - refunded - %(amount)s) where id = %(id)s)
        insert into refunds (payment_id, amount, reason) values (%(id)s, %(amount)s, 'by_organizer')
        """,
        {"id": command.payment_id, "amount": command.amount},
    )
    return RefundResult(amount_left - command.amount)


_NET_FEE: LiteralString = "(fee - round(fee::numeric * refunded / amount)::bigint)"
"""The fee of a payment without the share that goes back with refunds."""


class ListPayments(Command):
    """Asks for the payments for an event, the newest first.

    before    only payments that were opened before the payment with this id
    """

    event_id: EventId
    limit: Annotated[int, Meta(ge=1, le=201)]
    before: Id | None = None


class CurrencyTotal(Struct):
    """The sums of one currency: paid, the share of the platform that stays there, and refunded or to be refunded.

    net    what stays with the organizer
    """

    currency: str
    payments: int
    amount: int
    fee: int
    refunded: int

    @property
    def net(self) -> int:
        return self.amount - self.refunded - self.fee


class ListedPayment(Struct):
    """A payment in the list.

    fee           the share of the platform that stays there
    is_refused    whether the processor refuses a refund of it
    dispute       the status of the newest dispute about it
    """

    id: int
    user_id: str
    email: str | None
    amount: int
    fee: int
    currency: str
    status: PaymentStatus
    refunded: int
    is_refused: bool
    dispute: StoredDisputeStatus | None
    moment: dt.datetime

    @property
    def net(self) -> int:
        """What stays with the organizer."""
        return self.amount - self.refunded - self.fee


class EventPayments(Struct):
    event: EventRow
    totals: list[CurrencyTotal]
    payments: list[ListedPayment]


class Payer(Struct):
    """A person who has paid for an event. `is_registered`: whether the registration still exists."""

    event: EventRow
    email: str | None
    is_registered: bool


@refuses(NOT_FOUND, FORBIDDEN)
async def list_for_event(reader: Reader, caller: Caller, command: ListPayments) -> EventPayments:
    """Read the payments for an event, and their sums."""
    event = await events.find(reader, caller, command.event_id)
    totals = await reader.rows(
        CurrencyTotal,
        f"""
        select currency, count(*) as payments, sum(amount)::bigint as amount, sum({_NET_FEE})::bigint as fee,
               sum(refunded)::bigint as refunded
          from payments where event_id = %(event_id)s and state = 'paid' group by currency order by currency
        """,
        {"event_id": command.event_id},
    )
    payments = await reader.rows(
        ListedPayment,
        f"""
        select payments.id, public_id as user_id, email, amount, {_NET_FEE} as fee, currency, state::text as status,
               refunded,
               exists (select from refunds where payment_id = payments.id and refunds.state = 'refused') as is_refused,
               (select disputes.state::text from disputes
                 where disputes.intent_id = payments.intent_id order by disputes.id desc limit 1) as dispute,
               coalesce(paid_at, payments.inserted_at) as moment
          from payments
         cross join lateral (select public_id, email from users where users.id = payments.user_id limit 1) as users
         where event_id = %(event_id)s and payments.id < coalesce(%(before)s, 9223372036854775807)
         order by payments.id desc limit %(limit)s
        """,
        {"event_id": command.event_id, "before": command.before, "limit": command.limit},
    )
    return EventPayments(event, totals, payments)


@refuses(NOT_FOUND, FORBIDDEN)
async def payer(reader: Reader, caller: Caller, command: ListPersonPayments) -> Payer:
    """Read the payer of an event. The registration may be gone."""
    event = await events.find(reader, caller, command.event_id)
    rows = await reader.tuples(
        """
        select email, exists (select from registrations where event_id = %(event_id)s and user_id = users.id)
          from users where public_id = %(user_id)s
                       and exists (select from payments where event_id = %(event_id)s and user_id = users.id)
        """,
        {"event_id": command.event_id, "user_id": command.user_id},
    )
    email, is_registered = rows[0] if rows else (None, False)
    return Payer(event, email, is_registered)
