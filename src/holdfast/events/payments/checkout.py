"""Checkout: opening the processor's page for a held seat, and following it until it is paid or has ended.

The messages of the processor only say where to look. What happened is read from the processor itself, so they may come
late, twice or in any order, and nobody needs to trust them.
"""

import datetime as dt
from functools import partial
from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.events.payments.due import Line, Taken
from holdfast.events.processor.processor import Checkout, Processor, Refused
from holdfast.events.registrations import holds, links
from holdfast.events.registrations.holds import Paid
from holdfast.events.resources import Reader, Steps, Tx

SPARE_MINUTES = 45
"""How much longer the processor's page is open than the time to pay, from when the processor is told of it first."""

LONGEST_MINUTES = 23.9 * 60
"""The processor keeps no page open for more than 24 hours."""

SHORTEST_MINUTES = 31
"""The processor opens no page that ends in less than 30 minutes. Calls take a while, and clocks differ."""

TRIED_HOURS = 24
"""For how long pages are tried to be opened for one seat if the processor is told of them and never answers."""

ASKED_SECONDS = 10
"""How often the processor is asked about a payment of which it sends no messages."""


GRACE_MINUTES = 5
"""How long after its end a page is not relied on to have ended: clocks differ, and payments take a while."""


class Payment(Struct):
    """A payment, as it is attended to.

    checkout    what the processor is told, as JSON, if it was told before
    is_held     whether the seat is held for it
    is_over     whether it must not be paid any more
    """

    id: int
    state: Literal["opening", "open", "paid", "ended", "refused"]
    event_id: int
    user_id: str
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


async def attend(steps: Steps, taken: Taken) -> dt.datetime | None:
    """Do what a payment needs now. Returns when it is due again; None if it is not."""
    processor = steps.resources.require_processor()
    id = taken.key
    payment = await steps.read(partial(_find, id=id))
    if payment.state == "opening":
        return await _open(steps, processor, payment)
    if payment.state == "paid" or payment.session_id is None:
        return None
    session = await processor.find_session(payment.session_id)
    if session.state == "open" and payment.is_over:
        session = await processor.end_session(payment.session_id)
    if session.state == "paid":
        paid = Paid(session.intent_id or "", session.amount, session.currency)
        await steps.transact(lambda tx: holds.confirm(tx, id, paid))
        return None
    if session.state == "ended":
        await steps.transact(lambda tx: holds.release(tx, id, "payment_expired"))
        return None
    return _next(steps, payment, payment.ends_at)


# Two lines, so that a payment that was made does not wait behind thousands of pages that are to be opened.
OPENING = Line("payments", "id", attend, at_once=24, rows="state = 'opening'", order="id")
FOLLOWING = Line("payments", "id", attend, at_once=12, rows="state <> 'opening'")


def _next(steps: Steps, payment: Payment, ends_at: dt.datetime) -> dt.datetime:
    """When to ask the processor next, unless it says itself that something has happened."""
    soon = payment.now + dt.timedelta(seconds=ASKED_SECONDS)
    if ends_at <= payment.now:
        return soon
    return ends_at if steps.resources.settings.stripe_webhook_secret else min(ends_at, soon)


async def _open(steps: Steps, processor: Processor, payment: Payment) -> dt.datetime | None:
    """Have the page opened. A held seat is not given up because that takes long: nobody could pay for it yet."""
    checkout = msgspec.json.decode(payment.checkout, type=Checkout) if payment.checkout else None
    if checkout is None or payment.now > checkout.ends_at + dt.timedelta(minutes=GRACE_MINUTES):
        # The processor was told nothing, or may have opened a page without telling us, which has ended by itself.
        is_vain = checkout is not None and payment.now > payment.inserted_at + dt.timedelta(hours=TRIED_HOURS)
        if payment.account_id is None or not payment.is_held or is_vain:
            why = "payment_refused" if payment.account_id is None else "payment_expired"
            await steps.transact(lambda tx: holds.release(tx, payment.id, why))
            return None
        checkout = await _prepared(steps, payment, payment.account_id)
        if checkout is None:
            return payment.now
    try:
        session = await processor.open_session(checkout)
    except Refused as refused:
        if payment.now > checkout.ends_at - dt.timedelta(minutes=SHORTEST_MINUTES) and payment.is_held:
            # It ends too soon, and no page was opened with this key: the processor would have told of it again.
            await _prepared(steps, payment, checkout.account_id)
            return payment.now
        error = str(refused)
        await steps.transact(lambda tx: holds.release(tx, payment.id, "payment_refused", error))
        return None
    page = holds.Page(session.id, session.url, checkout.ends_at)
    ends_at = await steps.transact(lambda tx: holds.begin(tx, payment.id, page))
    is_news = session.state != "open" or ends_at <= payment.now
    return payment.now if is_news else _next(steps, payment, ends_at)


async def _prepared(steps: Steps, payment: Payment, account_id: str) -> Checkout | None:
    """What the processor is to be told, stored before the first call: each call with its key must say the same.

    None if the page was opened meanwhile.
    """
    wanted = _checkout(payment, account_id, steps)
    stored = await steps.transact(partial(_prepare, wanted=wanted, before=payment.checkout))
    return msgspec.json.decode(stored, type=Checkout) if stored else None


def _checkout(payment: Payment, account_id: str, steps: Steps) -> Checkout:
    open = payment.ends_at - payment.inserted_at + dt.timedelta(minutes=SPARE_MINUTES)
    link = links.Link(payment.event_id, payment.user_id, payment.arrival)
    # Not the person's own page: whoever pays may not own the address.
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
        ends_at=payment.now + min(open, dt.timedelta(minutes=LONGEST_MINUTES)),
        done_url=f"{page}?paid=1",
        back_url=page,
    )


async def _find(reader: Reader, id: int) -> Payment:
    payment = await reader.row(
        Payment,
        """
        select payments.id, payments.state::text, payments.event_id, users.public_id as user_id, payments.arrival,
               payments.amount, payments.fee, payments.currency, payments.account_id, payments.session_id,
               payments.checkout::text, events.title, users.email, registrations.language, payments.inserted_at,
               payments.ends_at, coalesce(registrations.status = 'held', false) and cancelled_at is null as is_held,
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


async def _prepare(tx: Tx, wanted: Checkout, before: str | None) -> str | None:
    """Store what is wanted, unless another process has stored something since `before`. Returns what is stored."""
    await tx.run(
        """
        update payments set checkout = %(wanted)s::jsonb
         where id = %(id)s and state = 'opening' and checkout is not distinct from %(before)s::jsonb
        """,
        {"id": wanted.payment_id, "wanted": msgspec.json.encode(wanted).decode(), "before": before},
    )
    return await tx.value("select checkout::text from payments where id = %(id)s", {"id": wanted.payment_id})
