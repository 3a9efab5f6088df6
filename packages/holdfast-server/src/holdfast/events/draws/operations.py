"""Naming a draw: the round of the beacon that draws a list, in advance."""

import datetime as dt
from typing import Any

from holdfast.events.draws import sql
from holdfast.events.draws.model import CHANNEL, DRAW_IN_THE_PAST, DRAW_WITHOUT_LOG
from holdfast.events.resources import Tx
from holdfast.kit.contract.problems import invalid
from holdfast_verify.formats.beacon import time_of
from holdfast_verify.formats.drawn_order import round_of


async def name_draw(tx: Tx, field: str, draw_at: dt.datetime | None, *, is_logged: bool) -> dict[str, Any]:
    """The columns for a draw, with the round of the beacon. Raises `validation_failed` if there can be none.

    field        the name of the field that has `draw_at`, for the refusal
    is_logged    whether there is a public log, without which nobody could check a draw
    """
    if draw_at is None:
        return {"draw_at": None, "draw_round": None, "draw_round_at": None}
    if draw_at <= await sql.read_clock(tx):
        raise invalid({field: [DRAW_IN_THE_PAST]})
    if not is_logged:
        raise invalid({field: [DRAW_WITHOUT_LOG]})
    await tx.notify(CHANNEL)
    round = round_of(draw_at)
    return {"draw_at": draw_at, "draw_round": round, "draw_round_at": time_of(round)}
