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


class DrawCheck(Struct):
    """What the order of a drawn list is computed from. The root is in base64, the signature in hex."""

    origin: str
    root: str
    signature: str


class DrawColumns(Struct, kw_only=True):
    """The columns of a row that has a draw, or has none.

    draw_at         when the list of entries closes
    draw_round      the round of the beacon that draws the list, which is due at `draw_round_at`
    draw_entries    of a frozen list: the number of its tickets
    is_closed       whether the list has closed
    check_...       see `check`; only the statements for pages read them
    """

    draw_at: dt.datetime | None
    draw_round: int | None
    draw_round_at: dt.datetime | None
    draw_entries: int | None
    drawn_at: dt.datetime | None
    draw_void_at: dt.datetime | None
    is_closed: bool
    check_origin: str | None = None
    check_root: str | None = None
    check_signature: str | None = None

    @property
    def draw_state(self) -> DrawState | None:
        """How far the draw is; None: there is no draw."""
        if self.draw_at is None:
            return None
        if self.drawn_at or self.draw_void_at:
            return "drawn" if self.drawn_at else "void"
        return "closed" if self.is_closed else "open"

    @property
    def check(self) -> DrawCheck | None:
        """What the order is computed from; None: it is not drawn."""
        if self.check_origin is None or self.check_root is None or self.check_signature is None:
            return None
        return DrawCheck(self.check_origin, self.check_root, self.check_signature)
