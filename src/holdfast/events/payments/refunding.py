"""Refunds: money that goes back, as the database has noted it."""

import datetime as dt
from functools import partial
from typing import Literal

import structlog
from msgspec import Struct

from holdfast.events.payments.due import Line, Taken
from holdfast.events.processor.processor import Refund, Refused
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


async def attend(steps: Steps, taken: Taken) -> dt.datetime | None:
    """Make a refund, or look whether one that was made has arrived."""
    processor = steps.resources.require_processor()
    wanted = await steps.read(partial(_find, id=taken.key))
    if wanted.refund_id is not None:
        if error := await processor.has_failed(wanted.refund_id):
            await steps.transact(partial(_refused, id=wanted.id, error=error))
        return None
    if wanted.state == "wanted":
        try:
            refund_id = await processor.refund(
                Refund(wanted.id, wanted.intent_id, wanted.amount, wanted.currency, wanted.fee > 0), taken.attempts
            )
            await steps.transact(partial(_made, id=wanted.id, refund_id=refund_id))
        except Refused as refused:
            error = str(refused)
            await steps.transact(partial(_refused, id=wanted.id, error=error))
    return None


LINE = Line("refunds", "id", attend, at_once=6)


async def _find(reader: Reader, id: int) -> Wanted:
    wanted = await reader.row(
        Wanted,
        """
        select refunds.id, refunds.state::text, payments.intent_id, refunds.amount, currency, fee, refund_id
          from refunds join payments on payments.id = payment_id where refunds.id = %(id)s
        """,
        {"id": id},
    )
    assert wanted  # refunds are never deleted
    return wanted


async def _made(tx: Tx, id: int, refund_id: str) -> None:
    await tx.run(
        "update refunds set state = 'made', refund_id = %(refund_id)s where id = %(id)s and state = 'wanted'",
        {"id": id, "refund_id": refund_id},
    )


async def _refused(tx: Tx, id: int, error: str) -> None:
    """Store why the money does not go back. People must look at it then."""
    log.error("a refund is refused", refund=id, error=error)
    await tx.run(
        "update refunds set state = 'refused', error = left(%(error)s, 1000) where id = %(id)s",
        {"id": id, "error": error},
    )
