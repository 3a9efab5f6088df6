"""The payments for one event as its organizer sees them: the list, and the payer of one."""

import datetime as dt
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow
from holdfast.events.ids import EventId
from holdfast.events.payments.disputes import DisputeState
from holdfast.events.payments.operations import ListPersonPayments, PaymentState
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses


class ListPayments(Command):
    """Asks for the payments for an event, the newest first.

    before    only payments that were opened before the payment with this id
    """

    event_id: EventId
    limit: Annotated[int, Meta(ge=1, le=201)]
    before: Id | None = None


class CurrencyTotal(Struct):
    """The sums of one currency: paid, the share of the platform, and refunded or to be refunded."""

    currency: str
    payments: int
    amount: int
    fee: int
    refunded: int


class ListedPayment(Struct):
    """A payment in the list.

    is_refused    whether the processor refuses a refund of it
    dispute       the status of the newest dispute about it
    """

    id: int
    user_id: str
    email: str | None
    amount: int
    currency: str
    state: PaymentState
    refunded: int
    is_refused: bool
    dispute: DisputeState | None
    moment: dt.datetime


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
        """
        select currency, count(*) as payments, sum(amount)::bigint as amount, sum(fee)::bigint as fee,
               sum(refunded)::bigint as refunded
          from payments where event_id = %(event_id)s and state = 'paid' group by currency order by currency
        """,
        {"event_id": command.event_id},
    )
    payments = await reader.rows(
        ListedPayment,
        """
        select payments.id, public_id as user_id, email, amount, currency, state::text, refunded,
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
