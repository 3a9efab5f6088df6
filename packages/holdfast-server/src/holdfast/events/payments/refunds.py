"""Refunds and disputes: the processor gives money back, or the bank of a cardholder takes it back.

Refunds are inserted where their reason arises: in `give_back` and `give_back_all` of `schema/triggers/`, in
`events/seats/held_seats.py`, and in `events/payments/operations.py`.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import structlog
from msgspec import Struct

from holdfast.events.payments.due import PaymentTable
from holdfast.events.processor.processor import Dispute, DisputeStatus, Processor, ProcessorRefusal, RefundRequest
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.seats.held_seats import PAYMENTS_CHANNEL
from holdfast.kit.background.leases import LeasedRow, RowTable

log = structlog.get_logger()

POLL_DAYS = 1
"""Days between polls of a dispute that is not decided, in case its message was lost."""

StoredDisputeStatus = Literal["unknown"] | DisputeStatus
"""`unknown`: not read yet; `inquiry`: the bank only asks; `closed`: the inquiry has ended, and no money was taken."""


async def handle_dispute(steps: Steps, row: LeasedRow) -> dt.datetime | None:
    """Read a dispute from the processor, and store its status. Returns when it is due again."""
    processor = steps.resources.require_processor()
    dispute_id = await steps.read(partial(_find_dispute, id=row.key))
    dispute = await processor.find_dispute(dispute_id)
    return await steps.transact(partial(_store_dispute, id=row.key, dispute=dispute))


DISPUTES = PaymentTable("disputes", RowTable("disputes", "id"), handle_dispute, max_concurrent=2)


async def record_dispute(tx: Tx, dispute_id: str, intent_id: str) -> None:
    """Store a new dispute about a payment, or make a known one due."""
    await tx.run(
        """
        insert into disputes (dispute_id, intent_id) values (%(dispute_id)s, %(intent_id)s)
            on conflict (dispute_id) do update set due_at = now()
        """,
        {"dispute_id": dispute_id, "intent_id": intent_id},
    )


async def _find_dispute(reader: Reader, id: int) -> str:
    return await reader.value("select dispute_id from disputes where id = %(id)s", {"id": id})


async def _store_dispute(tx: Tx, id: int, dispute: Dispute) -> dt.datetime | None:
    """Store the status of a dispute. Returns the time of the next poll."""
    if dispute.status == "lost":
        log.warning("a dispute about a payment is lost", dispute=dispute.id, intent=dispute.intent_id)
    rows = await tx.tuples(
        """
        with old_dispute as (select state, refundable from disputes where id = %(id)s for update),
        stored_dispute as (
            update disputes set state = %(state)s::dispute_state, amount = %(amount)s, refundable = %(refundable)s
              from old_dispute where id = %(id)s
         returning disputes.state, intent_id,
                   (old_dispute.state, old_dispute.refundable) <> (disputes.state, disputes.refundable) as is_other),
        -- The refunds that wait for the dispute become due.
        due_refund as (
            update refunds set due_at = now() from stored_dispute join payments using (intent_id)
             where is_other and payments.id = payment_id and refunds.state = 'wanted')
        select is_other, case when state in ('inquiry', 'open') then now() + %(days)s * interval '1 day' end
          from stored_dispute
        """,
        {
            "id": id,
            "state": dispute.status,
            "amount": dispute.amount,
            "refundable": dispute.refundable,
            "days": POLL_DAYS,
        },
    )
    [(is_other, due_at)] = rows
    if is_other:
        await tx.notify(PAYMENTS_CHANNEL)
    return due_at


RefundStatus = Literal["wanted", "made", "refused"]

RefundBlock = Literal["open", "lost"]
"""Why no refund can be made: the dispute is not decided, or the bank has taken the money back for good."""


class DueRefund(Struct):
    """A refund, as background work reads it.

    id                     the id of the row
    status                 `wanted`: not made yet; `made`; `refused`: the processor refused it, or it failed later
    processor_refund_id    the id of the refund at the processor; None: it was not made yet
    refund_block           why it cannot be made now
    won_dispute_count      the number of disputes about the payment that were won
    """

    id: int
    status: RefundStatus
    intent_id: str
    amount: int
    currency: str
    fee: int
    processor_refund_id: str | None
    refund_block: RefundBlock | None
    won_dispute_count: int


BLOCK_REASONS: Mapping[RefundBlock, str] = {
    "open": "The holder of the card disputes the payment at the bank. The refund waits until that is decided.",
    "lost": "The bank of the card has taken the money back already, because its holder disputed the payment.",
}
"""Why no refund is made: a person who disputes a payment would get the money twice."""


async def handle_refund(steps: Steps, row: LeasedRow) -> None:
    """Make a refund, or check whether one that was made has failed. It is never due again by time."""
    processor = steps.resources.require_processor()
    refund = await steps.read(partial(_find_refund, id=row.key))
    if refund.processor_refund_id is not None:
        if error := await processor.refund_failure(refund.processor_refund_id):
            await _refuse(steps, refund.id, error)
    elif refund.status != "wanted":
        return
    elif refund.refund_block == "open":  # it is due again when the dispute is decided
        await steps.transact(partial(_mark_waiting, id=refund.id, why=BLOCK_REASONS["open"]))
    elif refund.refund_block == "lost":
        await _refuse(steps, refund.id, BLOCK_REASONS["lost"])
    else:
        await _request(steps, processor, refund, row.attempts)


async def _request(steps: Steps, processor: Processor, refund: DueRefund, attempts: int) -> None:
    """Have the processor make a refund. If it refuses because of a dispute, wait until that is decided."""
    request = RefundRequest(
        refund.id,
        refund.intent_id,
        refund.amount,
        refund.currency,
        has_fee=refund.fee > 0,
        won_dispute_count=refund.won_dispute_count,
    )
    try:
        processor_refund_id = await processor.refund(request, attempts)
    except ProcessorRefusal as refusal:
        open_disputes = [item for item in await processor.disputes_of(refund.intent_id) if item.status == "open"]
        if open_disputes:  # their messages have not come yet
            await steps.transact(partial(_record_disputes, disputes=open_disputes))
        else:
            await _refuse(steps, refund.id, str(refusal))
    else:
        await steps.transact(partial(_mark_made, id=refund.id, processor_refund_id=processor_refund_id))


async def _refuse(steps: Steps, id: int, error: str) -> None:
    """Store why a refund is not made, or has failed. An operator must look at it then."""
    await steps.transact(partial(_mark_refused, id=id, error=error))
    log.error("a refund is refused", refund=id, error=error)


REFUNDS = PaymentTable("refunds", RowTable("refunds", "id"), handle_refund, max_concurrent=6)


async def _find_refund(reader: Reader, id: int) -> DueRefund:
    refund = await reader.row(
        DueRefund,
        """
        select refunds.id, refunds.state::text as status, payments.intent_id, refunds.amount, currency, fee,
               refund_id as processor_refund_id, blocked_by_dispute(payments.intent_id) as refund_block,
               (select count(*) from disputes where disputes.intent_id = payments.intent_id and disputes.state = 'won')
                   as won_dispute_count
          from refunds join payments on payments.id = payment_id where refunds.id = %(id)s
        """,
        {"id": id},
    )
    assert refund  # refunds are never deleted
    return refund


async def _mark_waiting(tx: Tx, id: int, why: str) -> None:
    await tx.run(
        """
        update refunds set error = %(why)s, awaits_dispute = true where id = %(id)s and state = 'wanted'
        """,
        {"id": id, "why": why},
    )


async def _record_disputes(tx: Tx, disputes: Sequence[Dispute]) -> None:
    for dispute in disputes:
        await record_dispute(tx, dispute.id, dispute.intent_id)


async def _mark_made(tx: Tx, id: int, processor_refund_id: str) -> None:
    await tx.run(
        """
        update refunds set state = 'made', refund_id = %(processor_refund_id)s, error = null
         where id = %(id)s and state = 'wanted'
        """,
        {"id": id, "processor_refund_id": processor_refund_id},
    )


async def _mark_refused(tx: Tx, id: int, error: str) -> None:
    await tx.run(
        "update refunds set state = 'refused', error = left(%(error)s, 1000) where id = %(id)s",
        {"id": id, "error": error},
    )
