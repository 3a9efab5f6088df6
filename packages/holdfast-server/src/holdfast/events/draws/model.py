"""Draws, and the lists that are drawn: queues and events keep a draw in the same columns and tables."""

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Literal, LiteralString, NamedTuple

from msgspec import Struct

from holdfast.events.resources import Database, Tx
from holdfast.kit.contract.messages import message

DRAWS_CHANNEL: LiteralString = "draws"
"""The channel that announces that a draw was set, or goes on."""

DrawStatus = Literal["open", "closed", "drawn", "void"]
"""How far a draw is: people enter, the list is closed, it is drawn, or it could not be frozen in time."""

DRAW_IS_FIXED = message("cannot be changed after the first entry, or once the list has closed")
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


class DrawColumns(CheckColumns):
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
    def draw_status(self) -> DrawStatus | None:
        """How far the draw is; None: there is no draw."""
        if self.draw_at is None:
            return None
        if self.drawn_at or self.draw_void_at:
            return "drawn" if self.drawn_at else "void"
        return "closed" if self.is_closed else "open"


class DrawSubject(NamedTuple):
    """A kind of lists. The SQL is about a row of its table, whose columns `draw_...` have the draw.

    noun          `queue` or `event`: as sentences say it, and how the names of the tables of its draws begin
    table         `queues` or `events`
    is_live       SQL: whether it is neither deleted nor cancelled
    entries       SQL: the number of tickets from before `draw_at`
    is_complete   SQL: whether all who came before `draw_at` have their tickets
    order         SQL: an insert of the order of `drawn_ticket`, which has a `ticket` and a `place` in each row
    on_drawn      SQL: further columns that are set when it is drawn
    confirmed     SQL: a select of the confirmed tickets of the one with `%(id)s`, which come before all others
    is_confirmed  SQL: whether those are stored
    channel       what is announced when a draw goes on; None: triggers announce it
    confirm       stores the confirmed tickets of a list, and tells the log. None: entries cannot be confirmed
    wait          waits, after a list has closed, for entries that are being stored. False: not all are stored yet
    """

    noun: Literal["queue", "event"]
    table: LiteralString
    is_live: LiteralString
    entries: LiteralString
    is_complete: LiteralString
    order: LiteralString
    on_drawn: LiteralString
    confirmed: LiteralString = "select null::bigint where false"
    is_confirmed: LiteralString = "true"
    channel: LiteralString | None = None
    confirm: Callable[[Tx, int, dt.datetime], Awaitable[None]] | None = None
    wait: Callable[[Database], Awaitable[bool]] | None = None

    @property
    def key(self) -> LiteralString:
        """The column that has its id in other tables."""
        return f"{self.noun}_id"

    @property
    def is_to_be_drawn(self) -> LiteralString:
        """SQL: whether a draw is to come. An index has these rows."""
        return f"draw_at is not null and drawn_at is null and draw_void_at is null and {self.is_live}"

    def check_of(self, row: LiteralString) -> LiteralString:
        """SQL for FROM: what the order of a drawn row with this name is computed from. `CHECK_COLUMNS` names it."""
        return f"""
            left join lateral (
                select origin as check_origin, encode(root, 'base64') as check_root,
                       encode(signature, 'hex') as check_signature, frozen_at as check_frozen_at,
                       witnesses as check_witnesses, cosigned_at as check_cosigned_at
                  from {self.noun}_freezes join {self.noun}_draws using ({self.key})
                  left join lateral (
                    select log_id from log_heads
                     where log_heads.origin = {self.noun}_freezes.origin limit 1) as log on true
                  left join lateral (
                    select witnesses, cosigned_at from freeze_proofs where log_id = log.log_id limit 1) as proof on true
                 where {self.key} = {row}.id and {row}.drawn_at is not null limit 1) as checks on true
        """


CHECK_COLUMNS: LiteralString = """
    checks.check_origin, checks.check_root, checks.check_signature, checks.check_frozen_at, checks.check_witnesses,
    checks.check_cosigned_at"""
