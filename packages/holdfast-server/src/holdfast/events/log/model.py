"""Public logs: their names, what is stored of them, and what statements that write to them need."""

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any, Literal, LiteralString, NamedTuple

from msgspec import Struct

from holdfast_verify.formats.signed_note import LogName, Noun
from holdfast_verify.formats.tree import TileId


class LogAddress(NamedTuple):
    """The log of a request; without a generation, the newest one."""

    noun: Noun
    id: int
    generation: int | None = None

    @property
    def subject(self) -> str:
        return LogName(self.noun, self.id).subject


class PendingRow(NamedTuple):
    """A row of `log_pending`. Arrays have an element for each arrival or place; all others have `details`.

    people     of arrivals: the public ids of the accounts that exist, the ids of visitors, or, without nonces, the
               commitments that `hide_pending_arrivals` has written
    numbers    of places: the numbers of the arrivals that get the outcomes
    """

    log_id: int
    id: int
    kind: str
    at: dt.datetime
    details: dict[str, Any] | None
    first_number: int | None
    received_at: list[dt.datetime] | None
    people: list[str | None] | None
    nonces: list[str | None] | None
    outcomes: list[str] | None
    cut: dt.datetime | None
    numbers: list[int] | None

    @property
    def entry_count(self) -> int:
        return len(self.received_at or self.numbers or [None])


class LogHead(NamedTuple):
    """A log that has something to seal, with the head of what is sealed.

    origin                 None: nothing is sealed yet
    size                   the number of sealed entries
    signed_size            the number of entries in the signed head; 0: there is none
    last_arrival_number    the number of the last sealed arrival; 0: none
    now                    the time of the database, after all that is pending
    tiles                  what `append` needs
    """

    log_id: int
    event_id: int | None
    queue_id: int | None
    generation: int
    origin: str | None
    size: int
    signed_size: int
    last_arrival_number: int
    now: dt.datetime
    tiles: dict[TileId, bytes]

    @property
    def name(self) -> LogName:
        if self.event_id is not None:
            return LogName("events", self.event_id, self.generation)
        if self.queue_id is not None:
            return LogName("queues", self.queue_id, self.generation)
        return LogName("heads", 0, self.generation)


class UnsignedHead(NamedTuple):
    """A head that is sealed and not signed."""

    log_id: int
    origin: str
    size: int
    root: bytes


class HeadLog(NamedTuple):
    """A head log whose head is sealed.

    checkpoint     the last checkpoint that is shown, with the cosignatures of witnesses; None: there is none yet
    signed_size    the number of entries in it
    """

    log_id: int
    origin: str
    size: int
    root: bytes
    signed_size: int
    checkpoint: str | None


class SealedHeadLog(NamedTuple):
    """A head log that was sealed.

    indexes    of the entries that are not signed yet, by the origin in them; None: some were sealed earlier
    """

    head: HeadLog
    indexes: Mapping[str, int] | None


class ListedHead(NamedTuple):
    """A head that is in the head log: the head log, the number of the entry, and the signed head of the head log."""

    log_id: int
    entry: int
    size: int
    checkpoint: str


class SignedLog(Struct):
    """A log as its addresses show it: what of it is signed.

    origin       None: nothing is sealed yet
    size         the number of signed entries; 0: none
    checkpoint   the signed head; None: there is none yet
    arrivals     the number of the last sealed arrival
    """

    log_id: int
    generation: int
    origin: str | None
    size: int
    checkpoint: str | None
    arrivals: int


class LogBundle(NamedTuple):
    """A bundle of entries of a log: its number, and its content."""

    number: int
    content: bytes


Changer = Literal["organizer", "person", "service"]
"""The side that changes a registration: the organizer, the person registered, or the service by its rules."""


def new_nonces(count: int) -> bytes:
    """Nonces for this many commitments, one after the other: 16 random bytes each."""
    return os.urandom(16 * count)


def changed_by(changer: Changer) -> LiteralString:
    """SQL for FROM: says for the log who makes the changes of this statement. Triggers log them at its end.

    Each statement that changes the status of registrations, or deletes them, has it.
    """
    return f"set_config('holdfast.changed_by', '{changer}', true) as changed_by"
