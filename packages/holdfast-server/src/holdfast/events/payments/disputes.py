"""Disputes: the holder of a card has the bank take a payment back. The status is read from the processor."""

import datetime as dt
from functools import partial
from typing import Literal

import structlog

from holdfast.events.payments.due import DueTable, LeasedRow
from holdfast.events.processor.processor import Dispute
from holdfast.events.resources import Reader, Steps, Tx

POLL_DAYS = 1
"""Days between polls of a dispute that is not decided, in case its message was lost."""

DisputeState = Literal["unknown", "inquiry", "open", "won", "lost", "closed"]
"""`inquiry`: the bank only asks; `closed`: the inquiry has ended, and no money was taken."""

RefundBlock = Literal["open", "lost"]
"""Why no refund can be made: the dispute is not decided, or the bank has taken the money back for good."""

log = structlog.get_logger()


async def handle_row(steps: Steps, row: LeasedRow) -> dt.datetime | None:
    """Read a dispute from the processor, and store its status. Returns when it is due again."""
    processor = steps.resources.require_processor()
    dispute_id = await steps.read(partial(_find, id=row.key))
    dispute = await processor.find_dispute(dispute_id)
    return await steps.transact(partial(_store, id=row.key, dispute=dispute))


DUE_TABLE = DueTable("disputes", "id", handle_row, at_once=2, name="disputes")


async def record(tx: Tx, dispute_id: str, intent_id: str) -> None:
    """Store a new dispute about a payment, or make a known one due."""
    await tx.run(
        """
        insert into disputes (dispute_id, intent_id) values (%(dispute_id)s, %(intent_id)s)
            on conflict (dispute_id) do update set due_at = now()
        """,
        {"dispute_id": dispute_id, "intent_id": intent_id},
    )


async def _find(reader: Reader, id: int) -> str:
    return await reader.value("select dispute_id from disputes where id = %(id)s", {"id": id})


async def _store(tx: Tx, id: int, dispute: Dispute) -> dt.datetime | None:
    """Store the status of a dispute. Returns the time of the next poll."""
    if dispute.state == "lost":
        log.warning("a dispute about a payment is lost", dispute=dispute.id, intent=dispute.intent_id)
    return await tx.value(
        """
        update disputes set state = %(state)s::dispute_state, amount = %(amount)s, refundable = %(refundable)s
         where id = %(id)s
     returning case when state in ('inquiry', 'open') then now() + %(days)s * interval '1 day' end
        """,
        {
            "id": id,
            "state": dispute.state,
            "amount": dispute.amount,
            "refundable": dispute.refundable,
            "days": POLL_DAYS,
        },
    )
