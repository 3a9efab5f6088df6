"""Refunds: money that goes back, as the database has noted it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import structlog
from msgspec import Struct

from holdfast.events.payments import disputes
from holdfast.events.payments.disputes import Blocked
from holdfast.events.payments.due import Line, Taken
from holdfast.events.processor.processor import Dispute, Refund, Refused
from holdfast.events.resources import Reader, Steps, Tx

log = structlog.get_logger()


class Wanted(Struct):
    """A refund, as it is attended to."""

    id: int
    state: Literal["wanted", "made", "refused"]
    intent_id: str
    amount: int
    currency: str
    fee: int
    refund_id: str | None
    blocked: Blocked | None
    won: int


BLOCKED: Mapping[Blocked, str] = {
    "open": "The holder of the card disputes the payment at the bank. It waits until that is decided.",
    "lost": "The bank of the card has taken the money back already, because its holder disputed the payment.",
}
"""Why no money is given back: whoever disputes a payment would have it twice."""


async def attend(steps: Steps, taken: Taken) -> dt.datetime | None:
    """Make a refund, or look whether one that was made has arrived."""
    processor = steps.resources.require_processor()
    wanted = await steps.read(partial(_find, id=taken.key))
    if wanted.refund_id is not None:
        if error := await processor.has_failed(wanted.refund_id):
            await steps.transact(partial(_refused, id=wanted.id, error=error))
        return None
    if wanted.state == "wanted" and wanted.blocked == "open":
        await steps.transact(partial(_waits, id=wanted.id, why=BLOCKED["open"]))
        return None  # it is due again when the dispute is decided
    if wanted.state == "wanted" and wanted.blocked == "lost":
        await steps.transact(partial(_refused, id=wanted.id, error=BLOCKED["lost"]))
        return None
    if wanted.state == "wanted":
        try:
            refund_id = await processor.refund(
                Refund(wanted.id, wanted.intent_id, wanted.amount, wanted.currency, wanted.fee > 0, wanted.won),
                taken.attempts,
            )
            await steps.transact(partial(_made, id=wanted.id, refund_id=refund_id))
        except Refused as refused:
            error = str(refused)
            if undecided := [each for each in await processor.disputes_of(wanted.intent_id) if each.state == "open"]:
                # Its message has not come yet. The refund is due again when it is known how the dispute stands.
                await steps.transact(partial(_hear, undecided=undecided))
                return None
            await steps.transact(partial(_refused, id=wanted.id, error=error))
    return None


LINE = Line("refunds", "id", attend, at_once=6)


async def _find(reader: Reader, id: int) -> Wanted:
    wanted = await reader.row(
        Wanted,
        """
        select refunds.id, refunds.state::text, payments.intent_id, refunds.amount, currency, fee, refund_id,
               blocked_by_dispute(payments.intent_id) as blocked,
               (select count(*) from disputes where disputes.intent_id = payments.intent_id and disputes.state = 'won')
                   as won
          from refunds join payments on payments.id = payment_id where refunds.id = %(id)s
        """,
        {"id": id},
    )
    assert wanted  # refunds are never deleted
    return wanted


async def _waits(tx: Tx, id: int, why: str) -> None:
    await tx.run("update refunds set error = %(why)s where id = %(id)s and state = 'wanted'", {"id": id, "why": why})


async def _hear(tx: Tx, undecided: Sequence[Dispute]) -> None:
    for each in undecided:
        await disputes.hear(tx, each.id, each.intent_id)


async def _made(tx: Tx, id: int, refund_id: str) -> None:
    await tx.run(
        """
        update refunds set state = 'made', refund_id = %(refund_id)s, error = null
         where id = %(id)s and state = 'wanted'
        """,
        {"id": id, "refund_id": refund_id},
    )


async def _refused(tx: Tx, id: int, error: str) -> None:
    """Store why the money does not go back. People must look at it then."""
    log.error("a refund is refused", refund=id, error=error)
    await tx.run(
        "update refunds set state = 'refused', error = left(%(error)s, 1000) where id = %(id)s",
        {"id": id, "error": error},
    )
