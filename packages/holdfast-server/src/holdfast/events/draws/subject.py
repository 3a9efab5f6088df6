"""What is drawn: the lists of queues and of events. Both keep the same columns and tables of a draw."""

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Literal, LiteralString, NamedTuple

from holdfast.events.resources import Database, Tx


class DrawSubject(NamedTuple):
    """A kind of lists. The SQL is about a row of its table, whose columns `draw_...` have the draw.

    noun          `queue` or `event`: as sentences say it, and how the names of the tables of its draws begin
    table         `queues` or `events`
    is_live       SQL: whether it is neither deleted nor cancelled
    entries       SQL: the number of tickets from before `draw_at`
    is_complete   SQL: whether all who came before `draw_at` have their tickets
    order         SQL: an insert of the order of `drawn`, which has a `ticket` and a `place` in each row
    on_drawn      SQL: further columns that are set when it is drawn
    confirmed     SQL: a select of the confirmed tickets of the one with `%(id)s`, which come before all others
    is_confirmed  SQL: whether those are stored
    channel       what is announced when a draw goes on; None: triggers announce it
    confirm       stores the confirmed tickets of a list, and tells the log. None: nobody can confirm anything
    wait          waits, after a list has closed, for those who are being stored. False: not all are stored yet
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
        """SQL for FROM: what the order of a drawn row with this name is computed from. `CHECKED` names it."""
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


CHECKED: LiteralString = """
    checks.check_origin, checks.check_root, checks.check_signature, checks.check_frozen_at, checks.check_witnesses,
    checks.check_cosigned_at"""
