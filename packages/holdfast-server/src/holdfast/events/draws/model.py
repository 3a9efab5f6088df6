"""The draw of a queue or an event, as rows have it."""

import datetime as dt
from typing import Literal, LiteralString

from msgspec import Struct

from holdfast.kit.contract.messages import message

CHANNEL: LiteralString = "draws"
"""The channel that announces that a draw was set, or goes on."""

DrawState = Literal["open", "closed", "drawn", "void"]
"""How far a draw is: people enter, the list is closed, it is drawn, or it could not be frozen in time."""

DRAW_IS_FIXED = message("cannot be changed once somebody has entered, or the list has closed")
DRAW_IN_THE_PAST = message("must be in the future")
DRAW_WITHOUT_LOG = message("needs the public log, which is switched off")
LOG_IS_NEEDED = message("is needed until the list is drawn")


class FreezeCosignature(Struct):
    """The name of a witness that has cosigned that a list was frozen, and when it did, by its own clock."""

    witness: str
    at: dt.datetime


class DrawCheck(Struct):
    """What the order of a drawn list is computed from. The root is in base64, the signature in hex.

    frozen_at      when the list was frozen, as the service says
    cosignatures   what witnesses said of that before the round
    """

    origin: str
    root: str
    signature: str
    frozen_at: dt.datetime
    cosignatures: list[FreezeCosignature]


class CheckColumns(Struct, kw_only=True):
    """The columns of `DrawSubject.check_of`. All are None if nothing is drawn, or if they are not read."""

    check_origin: str | None = None
    check_root: str | None = None
    check_signature: str | None = None
    check_frozen_at: dt.datetime | None = None
    check_witnesses: list[str] | None = None
    check_cosigned_at: list[dt.datetime] | None = None

    @property
    def check(self) -> DrawCheck | None:
        """What the order is computed from; None: it is not drawn."""
        origin, root, signature = self.check_origin, self.check_root, self.check_signature
        if origin is None or root is None or signature is None or self.check_frozen_at is None:
            return None
        times = zip(self.check_witnesses or (), self.check_cosigned_at or (), strict=True)
        cosignatures = [FreezeCosignature(witness, at) for witness, at in times]
        return DrawCheck(origin, root, signature, self.check_frozen_at, cosignatures)


class DrawColumns(CheckColumns, kw_only=True):
    """The columns of a row that has a draw, or has none.

    draw_at         when the list of entries closes
    draw_round      the round of the beacon that draws the list, which is due at `draw_round_at`
    draw_entries    of a frozen list: the number of its tickets
    is_closed       whether the list has closed
    """

    draw_at: dt.datetime | None
    draw_round: int | None
    draw_round_at: dt.datetime | None
    draw_entries: int | None
    drawn_at: dt.datetime | None
    draw_void_at: dt.datetime | None
    is_closed: bool

    @property
    def draw_state(self) -> DrawState | None:
        """How far the draw is; None: there is no draw."""
        if self.draw_at is None:
            return None
        if self.drawn_at or self.draw_void_at:
            return "drawn" if self.drawn_at else "void"
        return "closed" if self.is_closed else "open"
