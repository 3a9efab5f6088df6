"""Disputes: the holder of a card has the bank take a payment back. The status is read from the processor."""

import datetime as dt
from functools import partial
from typing import Literal

import structlog

from holdfast.events.payments.due import PaymentTable
from holdfast.events.processor.processor import Dispute, DisputeStatus
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.seats.seats import PAYMENTS_CHANNEL
from holdfast.kit.background.row_table import LeasedRow, RowTable

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
        with before as (select state, refundable from disputes where id = %(id)s for update),
        stored as (
            update disputes set state = %(state)s::dispute_state, amount = %(amount)s, refundable = %(refundable)s
              from before where id = %(id)s
         returning disputes.state, intent_id,
                   (before.state, before.refundable) <> (disputes.state, disputes.refundable) as is_other),
        -- The refunds that wait for the dispute become due.
        freed as (
            update refunds set due_at = now() from stored join payments using (intent_id)
             where is_other and payments.id = payment_id and refunds.state = 'wanted')
        select is_other, case when state in ('inquiry', 'open') then now() + %(days)s * interval '1 day' end from stored
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
