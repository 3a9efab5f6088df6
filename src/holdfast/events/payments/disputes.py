"""Disputes: the holder of a card has the bank take a payment back. The processor is asked how each stands."""

import datetime as dt
from functools import partial
from typing import Literal

import structlog

from holdfast.events.payments.due import Line, Taken
from holdfast.events.processor.processor import Dispute
from holdfast.events.resources import Reader, Steps, Tx

ASKED_DAYS = 1
"""How often the processor is asked about a dispute that is not decided, in case its message was lost."""

State = Literal["unknown", "inquiry", "open", "won", "lost", "closed"]
"""`inquiry`: the bank only asks; `closed`: it has ended, and no money was taken."""

Blocked = Literal["open", "lost"]
"""Why no money can be given back: the dispute is not decided, or the bank has taken the money back for good."""

log = structlog.get_logger()


async def attend(steps: Steps, taken: Taken) -> dt.datetime | None:
    """Ask how a dispute stands, and store it."""
    processor = steps.resources.require_processor()
    dispute_id = await steps.read(partial(_find, id=taken.key))
    found = await processor.find_dispute(dispute_id)
    return await steps.transact(partial(_store, id=taken.key, found=found))


LINE = Line("disputes", "id", attend, at_once=2)


async def hear(tx: Tx, dispute_id: str, intent_id: str) -> None:
    """Store that there is a dispute about a payment, or that something has happened with it."""
    await tx.run(
        """
        insert into disputes (dispute_id, intent_id) values (%(dispute_id)s, %(intent_id)s)
            on conflict (dispute_id) do update set due_at = now()
        """,
        {"dispute_id": dispute_id, "intent_id": intent_id},
    )


async def _find(reader: Reader, id: int) -> str:
    return await reader.value("select dispute_id from disputes where id = %(id)s", {"id": id})


async def _store(tx: Tx, id: int, found: Dispute) -> dt.datetime | None:
    """Store how a dispute stands. Returns when to ask again."""
    if found.state == "lost":
        log.warning("a dispute about a payment is lost", dispute=found.id, intent=found.intent_id)
    return await tx.value(
        """
        update disputes set state = %(state)s::dispute_state, amount = %(amount)s, refundable = %(refundable)s
         where id = %(id)s
     returning case when state in ('inquiry', 'open') then now() + %(days)s * interval '1 day' end
        """,
        {
            "id": id,
            "state": found.state,
            "amount": found.amount,
            "refundable": found.refundable,
            "days": ASKED_DAYS,
        },
    )
