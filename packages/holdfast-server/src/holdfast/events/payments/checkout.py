"""Checkout: opening the processor's page for a held seat, and following it until it is paid or has ended.

The processor's messages only name the payment. Its status is read from the processor itself, so messages may come late,
twice or in any order, and need not be trusted.
"""

import datetime as dt
from functools import partial

import msgspec
from msgspec import Struct

from holdfast.events.payments.due import PaymentTable
from holdfast.events.processor.processor import Checkout, Processor, ProcessorRefusal
from holdfast.events.registrations import links
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.seats import held_seats
from holdfast.events.seats.held_seats import PaymentStatus, SessionPayment
from holdfast.kit.background.leases import LeasedRow, RowTable

SPARE_MINUTES = 45
"""How much longer than the time to pay the processor's page is open, from the first call about it."""

MAX_OPEN_MINUTES = 23.9 * 60
"""The processor keeps no page open for more than 24 hours."""

MIN_OPEN_MINUTES = 31
"""The processor opens no page that ends in less than 30 minutes. Calls take a while, and clocks differ."""

OPENING_RETRY_HOURS = 24
"""How long opening pages for one seat is retried if the processor never answers."""

POLL_SECONDS = 10
"""Seconds between polls of a payment if the processor sends no messages."""

GRACE_MINUTES = 5
"""How long after its end a page counts as possibly open: clocks differ, and payments take a while."""


class PaymentRow(Struct):
    """A payment, as background work reads it.

    checkout    the stored request to the processor, as JSON; None: none was sent
    is_held     whether the seat is held for it
    is_over     whether it must not be paid any more
    """

    id: int
    status: PaymentStatus
    event_id: int
    public_id: str
    arrival: int
    amount: int
    fee: int
    currency: str
    account_id: str | None
    session_id: str | None
    checkout: str | None
    title: str
    email: str | None
    language: str | None
    inserted_at: dt.datetime
    ends_at: dt.datetime
    is_held: bool
    is_over: bool
    now: dt.datetime


async def handle_row(steps: Steps, row: LeasedRow) -> dt.datetime | None:
    """Do the work that a payment needs now. Returns when it is due again; None if it is not."""
    processor = steps.resources.require_processor()
    id = row.key
    payment = await steps.read(partial(_find, id=id))
    if payment.status == "opening":
        return await _open(steps, processor, payment)
    if payment.status == "paid" or payment.session_id is None:
        return None
    session = await processor.find_session(payment.session_id)
    if session.status == "open" and payment.is_over:
        session = await processor.end_session(payment.session_id)
    if session.status == "paid":
        session_payment = SessionPayment(session.intent_id or "", session.amount, session.currency)
        await steps.transact(lambda tx: held_seats.confirm_payment(tx, id, session_payment))
        return None
    if session.status == "ended":
        await steps.transact(lambda tx: held_seats.end_payment(tx, id, "payment_expired"))
        return None
    return _next_poll_at(steps, payment, payment.ends_at)


# Handled separately, so that a payment that was made does not wait behind thousands of pages that are to be opened.
OPENING = PaymentTable(
    "checkouts", RowTable("payments", "id", "state = 'opening'", order="id"), handle_row, max_concurrent=24
)
FOLLOWING = PaymentTable("payments", RowTable("payments", "id", "state <> 'opening'"), handle_row, max_concurrent=12)


def _next_poll_at(steps: Steps, payment: PaymentRow, ends_at: dt.datetime) -> dt.datetime:
    """The time of the next poll, unless a message of the processor comes first."""
    soon = payment.now + dt.timedelta(seconds=POLL_SECONDS)
    if ends_at <= payment.now:
        return soon
    return ends_at if steps.resources.settings.stripe_webhook_secrets else min(ends_at, soon)


async def _open(steps: Steps, processor: Processor, payment: PaymentRow) -> dt.datetime | None:
    """Have the page opened. A slow opening does not release the held seat: the person could not pay for it yet."""
    checkout = msgspec.json.decode(payment.checkout, type=Checkout) if payment.checkout else None
    if checkout is None or payment.now > checkout.ends_at + dt.timedelta(minutes=GRACE_MINUTES):
        # The processor was told nothing, or may have opened a page without telling us, which has ended by itself.
        is_abandoned = checkout is not None and payment.now > payment.inserted_at + dt.timedelta(
            hours=OPENING_RETRY_HOURS
        )
        if payment.account_id is None or not payment.is_held or is_abandoned:
            reason = "payment_refused" if payment.account_id is None else "payment_expired"
            await steps.transact(lambda tx: held_seats.end_payment(tx, payment.id, reason))
            return None
        checkout = await _prepare_checkout(steps, payment, payment.account_id)
        if checkout is None:
            return payment.now
    try:
        session = await processor.open_session(checkout)
    except ProcessorRefusal as refusal:
        if payment.now > checkout.ends_at - dt.timedelta(minutes=MIN_OPEN_MINUTES) and payment.is_held:
            # It ends too soon, and no page was opened with this key: the processor would have returned it again.
            await _prepare_checkout(steps, payment, checkout.account_id)
            return payment.now
        error = str(refusal)
        await steps.transact(lambda tx: held_seats.end_payment(tx, payment.id, "payment_refused", error))
        return None
    page = held_seats.CheckoutPage(session.id, session.url, checkout.ends_at)
    ends_at = await steps.transact(lambda tx: held_seats.begin_payment(tx, payment.id, page))
    has_ended = session.status != "open" or ends_at <= payment.now
    return payment.now if has_ended else _next_poll_at(steps, payment, ends_at)


async def _prepare_checkout(steps: Steps, payment: PaymentRow, account_id: str) -> Checkout | None:
    """The request to the processor, stored before the first call: all calls with one key must be the same.

    None if the page was opened meanwhile.
    """
    checkout = _checkout(payment, account_id, steps)
    stored_checkout = await steps.transact(partial(_store_checkout, new=checkout, old=payment.checkout))
    return msgspec.json.decode(stored_checkout, type=Checkout) if stored_checkout else None


def _checkout(payment: PaymentRow, account_id: str, steps: Steps) -> Checkout:
    open_time = payment.ends_at - payment.inserted_at + dt.timedelta(minutes=SPARE_MINUTES)
    link = links.Link(payment.event_id, payment.public_id, payment.arrival)
    # Not the person's own page: the payer may not own the address.
    page = steps.resources.settings.base_url + links.outcome_path(steps.resources.secret, link)
    return Checkout(
        payment_id=payment.id,
        event_id=payment.event_id,
        amount=payment.amount,
        fee=payment.fee,
        currency=payment.currency,
        account_id=account_id,
        title=payment.title,
        email=payment.email,
        language=payment.language or "en",
        ends_at=payment.now + min(open_time, dt.timedelta(minutes=MAX_OPEN_MINUTES)),
        done_url=f"{page}?paid=1",
        back_url=page,
    )


async def _find(reader: Reader, id: int) -> PaymentRow:
    payment = await reader.row(
        PaymentRow,
        """
        select payments.id, payments.state::text as status, payments.event_id, users.public_id,
               payments.arrival, payments.amount, payments.fee, payments.currency, payments.account_id,
               payments.session_id, payments.checkout::text, events.title, users.email, registrations.language,
               payments.inserted_at, payments.ends_at,
               coalesce(registrations.status = 'held', false) and cancelled_at is null as is_held,
               payments.ends_at <= now() as is_over, now() as now
          from payments
          join events on events.id = payments.event_id
          join users on users.id = payments.user_id
          left join registrations on registrations.event_id = payments.event_id
                                 and registrations.user_id = payments.user_id
                                 and registrations.arrival = payments.arrival
         where payments.id = %(id)s
        """,
        {"id": id},
    )
    assert payment  # payments are never deleted
    return payment


async def _store_checkout(tx: Tx, new: Checkout, old: str | None) -> str | None:
    """Store the new checkout, unless another process has replaced the old one. Returns the stored checkout."""
    await tx.run(
        """
        update payments set checkout = %(checkout)s::jsonb
         where id = %(id)s and state = 'opening' and checkout is not distinct from %(before)s::jsonb
        """,
        {"id": new.payment_id, "checkout": msgspec.json.encode(new).decode(), "before": old},
    )
    return await tx.value("select checkout::text from payments where id = %(id)s", {"id": new.payment_id})
