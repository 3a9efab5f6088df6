"""Seats: those that are held until they are paid, and freed ones, which the first on the waiting list gets.

A person who registers on the page of a paid event gets a seat that is held: it counts, at the price at which the person
registered. A payment is opened for it in the same transaction. The time to pay begins when the processor's page is
ready. When the payment arrives, the person gets the seat. When the payment can never be made any more, the seat goes to
the next person on the waiting list, in the transaction that freed it.

A payment without a seat is refunded in full. Database triggers make that refund for a person who loses a paid seat;
this module makes it for a payment that arrives when the seat is gone.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Literal, LiteralString

from msgspec import Struct

from holdfast.events.log.model import changed_by
from holdfast.events.pricing.operations import reprice
from holdfast.events.processor.currencies import by_currency
from holdfast.events.resources import Reader, Tx

PAYMENTS_CHANNEL: LiteralString = "payments"
"""The channel that wakes up all work with the payment processor (`events/payments/due.py`).

It is declared here because `payments` imports `seats`, and not the other way round. SQL functions use the name
too.
"""

UNIT: LiteralString = by_currency("unit")


async def open_payments(tx: Tx, event_ids: Sequence[int]) -> None:
    """Open payments for those held seats of locked events that have no payment yet."""
    await tx.run(
        f"""
        with new_payment as (
            insert into payments (event_id, user_id, arrival, amount, fee, currency, account_id,
                                  refund_days, ends_at, language)
            select event_id, user_id, arrival, amount_due, div(amount_due * %(percent)s, 100 * {UNIT}) * {UNIT},
                   currency, account_id, coalesce(refund_days, 0), held_until, language
              from registrations
              join events on events.id = event_id
              left join payout_accounts on payout_accounts.organizer_id = events.organizer_id and is_confirmed
             where event_id = any(%(event_ids)s) and status = 'held'
               and not exists (select from payments as current_payment
                                where current_payment.event_id = registrations.event_id
                                  and current_payment.user_id = registrations.user_id
                                  and current_payment.arrival = registrations.arrival
                                  and current_payment.state in ('opening', 'open'))
             order by received_at, registrations.arrival
         returning 1)
        select
        """,
        {"event_ids": list(event_ids), "percent": tx.resources.settings.platform_fee_percent},
    )
    await tx.notify(PAYMENTS_CHANNEL)


async def lock_event_of(tx: Tx, event_id: int) -> None:
    """Lock the event: until the transaction ends, no other can settle or free its seats."""
    await tx.run("select from events where id = %(id)s for no key update", {"id": event_id})


async def has_free_seat(reader: Reader, event_id: int) -> bool:
    """Whether an event has a free seat."""
    return bool(
        await reader.value("select registered_count < capacity from events where id = %(id)s", {"id": event_id})
    )


async def refill_seats(tx: Tx, event_ids: Sequence[int]) -> None:
    """Give freed seats to the waiting lists, and compute the prices again."""
    await promote(tx, event_ids)
    await reprice(tx, event_ids, "registration")


async def promote(tx: Tx, event_ids: Sequence[int]) -> None:
    """Give every free seat of active events to their waiting lists, in order of arrival.

    The caller has locked the events. A person who has to pay gets a held seat. A person whom the organizer has moved to
    the waiting list gets none.
    """
    if await _promote_first_waiting(tx, event_ids):
        await open_payments(tx, event_ids)


async def _promote_first_waiting(tx: Tx, event_ids: Sequence[int]) -> bool:
    """Give the free seats of active events to the first on their waiting lists. Returns whether one has to be paid."""
    return await tx.value(
        f"""
        with first_waiting as (
            select waiting.* from events
             cross join {changed_by("service")}
             cross join lateral (
                select event_id, user_id,
                       case when amount_due is null then 'registered' else 'held' end::registration_status as status,
                       case when amount_due is not null
                            then least(now() + %(claim_hours)s * interval '1 hour', events.datetime) end as held_until
                  from registrations
                 where event_id = events.id and status = 'waitlisted' and reason is null
                 order by received_at, arrival limit capacity - registered_count) as waiting
             where events.id = any(%(event_ids)s) and cancelled_at is null and datetime > now()),
        promoted_registration as (
            update registrations set status = first_waiting.status, held_until = first_waiting.held_until
              from first_waiting
             where registrations.event_id = first_waiting.event_id and registrations.user_id = first_waiting.user_id
         returning registrations.status)
        select exists (select from promoted_registration where status = 'held')
        """,
        {"event_ids": list(event_ids), "claim_hours": tx.resources.settings.claim_hours},
    )


ReleaseReason = Literal["payment_expired", "payment_refused"]
"""Why a held seat was released: it was not paid in time, or the processor takes no payment for it."""


PaymentStatus = Literal["opening", "open", "paid", "ended", "refused"]
"""The status of a payment, or of an attempt to make one."""


class SessionPayment(Struct):
    """A payment as the processor reports it for a session."""

    intent_id: str
    amount: int
    currency: str


class CheckoutPage(Struct):
    """A page of the processor on which a held seat can be paid.

    ends_at    the time when the page expires
    """

    session_id: str
    url: str | None
    ends_at: dt.datetime


async def begin_payment(tx: Tx, payment_id: int, page: CheckoutPage) -> dt.datetime:
    """Store that the payment page is ready: if the seat is still held, the person's full time to pay begins now.

    Returns the time until which the seat may be paid. Beginning twice changes nothing.
    """
    await _lock_payment(tx, payment_id)
    return await tx.value(
        """
        with held_seat as (
            select payments.event_id, payments.user_id,
                   greatest(ends_at, least(%(page_ends_at)s, clock_timestamp() + (ends_at - payments.inserted_at)))
                   as ends_at
              from payments
              join registrations using (event_id, user_id, arrival)
              join events on events.id = event_id
             where payments.id = %(id)s and payments.state = 'opening' and status = 'held' and cancelled_at is null),
        opened_payment as (
            update payments
               set state = 'open', session_id = %(session_id)s, url = %(url)s, checkout = null,
                   ends_at = coalesce((select ends_at from held_seat), ends_at)
             where id = %(id)s and state = 'opening' returning ends_at),
        prolonged_registration as (
            update registrations set held_until = held_seat.ends_at from held_seat
             where registrations.event_id = held_seat.event_id and registrations.user_id = held_seat.user_id)
        select coalesce((select ends_at from opened_payment), (select ends_at from payments where id = %(id)s))
        """,
        {"id": payment_id, "session_id": page.session_id, "url": page.url, "page_ends_at": page.ends_at},
    )


async def confirm_payment(tx: Tx, payment_id: int, session_payment: SessionPayment) -> None:
    """Store that a payment was made, and give the person the seat. If the seat is gone, the payment is refunded.

    A late payment takes a free seat if the waiting list is empty. A payment of another amount or currency than
    requested gets no seat: the amount that was paid is refunded. Confirming twice changes nothing.
    """
    event_id = await _lock_payment(tx, payment_id)
    [(is_new, has_seat)] = await tx.tuples(
        f"""
        with payment as (
            update payments
               set state = 'paid', paid_at = clock_timestamp(), intent_id = %(intent_id)s, due_at = null, error = null,
                   checkout = null, amount = %(amount)s, currency = %(currency)s, fee = least(fee, %(amount)s - 1)
             where id = %(id)s and state <> 'paid' returning *),
        seated_registration as (
            update registrations
               set status = 'registered', amount_paid = payment.amount, held_until = null, reason = null,
                   cancels_at = null  -- a person who pays for a seat keeps it
              from payment
              join events on events.id = payment.event_id
             cross join {changed_by("person")}
             where registrations.event_id = payment.event_id and registrations.user_id = payment.user_id
               and registrations.arrival = payment.arrival
               and (registrations.amount_due, events.currency) = (payment.amount, payment.currency)
               and events.cancelled_at is null
               and (status = 'held'
                    or status = 'rejected' and reason = 'payment_expired' and events.datetime > now()
                       and registered_count < capacity
                       and not exists (select from registrations as others
                                        where others.event_id = payment.event_id and others.status = 'waitlisted'
                                          and others.reason is null))
         returning 1),
        passed_on_cancellation as (
            update own_cancellations set passed_on_at = clock_timestamp()
              from payment
             where own_cancellations.event_id = payment.event_id and next_arrival = payment.arrival
               and passed_on_at is null and exists (select from seated_registration)),
        new_refund as (
            insert into refunds (payment_id, amount, reason)
            select id, amount, 'no_seat' from payment where not exists (select from seated_registration))
        select exists (select from payment), exists (select from seated_registration)
        """,
        {
            "id": payment_id,
            "intent_id": session_payment.intent_id,
            "amount": session_payment.amount,
            "currency": session_payment.currency.upper(),
        },
    )
    if has_seat:
        await reprice(tx, [event_id], "registration")
    elif is_new:
        await _release_held_seat(tx, payment_id, event_id, "payment_refused")


async def end_payment(tx: Tx, payment_id: int, reason: ReleaseReason, error: str | None = None) -> None:
    """Store that a payment can no longer be made, and release the seat that is held for it.

    Ending twice changes nothing.
    """
    event_id = await _lock_payment(tx, payment_id)
    is_ended = await tx.value(
        """
        update payments set state = %(state)s::payment_state, due_at = null, error = %(error)s, checkout = null
         where id = %(id)s and state in ('opening', 'open') returning true
        """,
        {"id": payment_id, "state": "ended" if reason == "payment_expired" else "refused", "error": error},
    )
    if is_ended:
        await _release_held_seat(tx, payment_id, event_id, reason)


async def _release_held_seat(tx: Tx, payment_id: int, event_id: int, reason: ReleaseReason) -> None:
    """Release the seat that is held for a payment: the next person on the waiting list gets it."""
    is_released = await tx.value(
        f"""
        update registrations
           set status = 'rejected', held_until = null,
               reason = case when cancelled_at is null then %(reason)s else 'event_cancelled' end
          from payments
          join events on events.id = payments.event_id
         cross join {changed_by("service")}
         where payments.id = %(id)s and status = 'held' and registrations.event_id = payments.event_id
           and registrations.user_id = payments.user_id and registrations.arrival = payments.arrival
        returning true
        """,
        {"id": payment_id, "reason": reason},
    )
    if is_released:
        await refill_seats(tx, [event_id])


async def _lock_payment(tx: Tx, payment_id: int) -> int:
    """Lock the event of a payment, as all code that moves seats does, and then the payment. Returns the event's id."""
    event_id: int = await tx.value("select event_id from payments where id = %(id)s", {"id": payment_id})
    await lock_event_of(tx, event_id)
    await tx.run("select from payments where id = %(id)s for no key update", {"id": payment_id})
    return event_id
