"""The entries of a public log as an audit reads them. docs/events/fairness.md says what each of them means."""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct


def decode_foreign(content: bytes | str, type: Any = Any) -> Any:
    """The value of a JSON text as a type. Raises `ValueError`, also for bytes that are no text, and deep nesting."""
    try:
        return msgspec.json.decode(content, type=type)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


RegistrationStatus = Literal["registered", "held", "waitlisted", "rejected", "removed", "pending", "in_draw"]
RegistrationOutcome = Literal["registered", "held", "waitlisted", "rejected"]
Actor = Literal["person", "organizer", "service"]

Moment = Annotated[dt.datetime, Meta(tz=True)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Number = Annotated[int, Meta(ge=1, le=2**53)]
Round = Annotated[int, Meta(ge=1, le=10**10)]
"""A round of the beacon. The last one is in the year 2974: Python cannot compute the times of later ones."""

Commitment = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{43}$")]


class EarlierLog(Struct):
    """The log that this one follows, as the open entry names it. `root` is base64."""

    origin: str
    size: int
    root: str


class DrawNaming(Struct):
    """The draw of a list, as it is named in advance, given up, or void."""

    round: Round
    given_up: bool = False
    void: bool = False


class OpenEntry(Struct, tag_field="kind", tag="open"):
    """The log begins. People who came before have no number in it.

    in_draw    how many of the people who came before wait for the draw of an event; None: no draw goes on
    event      `cancelled`, if the event was cancelled before
    """

    format: str
    at: Moment
    origin: str
    of: Literal["event", "queue"]
    first_number: Number
    capacity: Count = 0
    waiting_places: Count = 0
    seated: Count = 0
    waiting: Count = 0
    released: Count = 0
    in_draw: Count | None = None
    event: str | None = None
    after: EarlierLog | None = None
    draw: DrawNaming | None = None


class ArrivalEntry(Struct, tag_field="kind", tag="arrival"):
    """A person registered, or a visitor joined a queue."""

    number: Number
    at: Moment
    person: Commitment
    outcome: RegistrationOutcome | None = None


class ChangeEntry(Struct, tag_field="kind", tag="change"):
    """A person moved, or the event or the queue was changed. What did not change is None."""

    at: Moment
    by: Actor
    number: Number | None = None
    person: Commitment | None = None
    received_at: Moment | None = None
    before: RegistrationStatus | None = msgspec.field(name="from", default=None)
    after: RegistrationStatus | None = msgspec.field(name="to", default=None)
    reason: str | None = None
    capacity: Count | None = None
    waiting_places: Count | None = None
    event: str | None = None
    draw: DrawNaming | None = None


class SealEntry(Struct, tag_field="kind", tag="seal"):
    """The end of a batch. With a cut: everything that was received up to it is logged."""

    at: Moment
    cut: Moment | None = None


class ReleaseEntry(Struct, tag_field="kind", tag="release"):
    """Visitors of a queue were let in, by their tickets."""

    at: Moment
    first: Number = msgspec.field(name="from")
    last: Number = msgspec.field(name="to")


class ConfirmationsEntry(Struct, tag_field="kind", tag="confirmations"):
    """The entries of a draw with these numbers are confirmed: the address was shown to be the person's."""

    at: Moment
    numbers: list[Number]


class FreezeEntry(Struct, tag_field="kind", tag="freeze"):
    """The list of a draw is closed. `holdfast_verify/audit/draw.py` judges it, and the draw.

    origin    the earlier log that was frozen, of which this log repeats the entry; None: this log
    """

    at: Moment
    entries: Count
    size: Count
    root: str
    round: Round
    origin: str | None = None


class DrawEntry(Struct, tag_field="kind", tag="draw"):
    """The order of a list was drawn. Bytes are in hexadecimal digits."""

    at: Moment
    round: Round
    signature: str
    seed: str
    order: str


class PlaceEntry(Struct, tag_field="kind", tag="place"):
    """A person who arrived before the draw of an event gets an outcome."""

    at: Moment
    number: Number
    outcome: RegistrationOutcome


class CloseEntry(Struct, tag_field="kind", tag="close"):
    """The log ends."""

    at: Moment
    reason: str


AuditedEntry = (
    OpenEntry
    | ArrivalEntry
    | ChangeEntry
    | SealEntry
    | ConfirmationsEntry
    | FreezeEntry
    | DrawEntry
    | PlaceEntry
    | ReleaseEntry
    | CloseEntry
)

KINDS = {"open", "arrival", "change", "seal", "confirmations", "freeze", "draw", "place", "release", "close"}


class UnknownKind(ValueError):
    """The entry is of a kind that this program does not know."""


class _EntryKind(Struct):
    kind: str


_DECODER = msgspec.json.Decoder(AuditedEntry)

_EARLIEST, _LATEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC), dt.datetime(3000, 1, 1, tzinfo=dt.UTC)
"""An entry may have any time between these. Python cannot compute with others."""


def parse_entry(entry: bytes) -> AuditedEntry:
    """An entry from its text. Raises `UnknownKind`, and ValueError if the text is no entry."""
    try:
        parsed = _DECODER.decode(entry)
    except RecursionError:
        raise ValueError("cannot be read: its values are nested too deep") from None
    except ValueError as error:  # those of msgspec, and of text that is not in UTF-8
        kind = _kind_of(entry)
        if kind is not None and kind not in KINDS:
            raise UnknownKind(f"is of the kind {kind!r}, which this program does not know") from error
        raise ValueError(f"cannot be read: {error}") from error
    if any(at is not None and not _EARLIEST <= at < _LATEST for at in _times_of(parsed)):
        raise ValueError("cannot be read: a time is not between the years 2000 and 2999")
    return parsed


def _times_of(entry: AuditedEntry) -> tuple[dt.datetime | None, ...]:
    match entry:
        case SealEntry():
            return entry.at, entry.cut
        case ChangeEntry():
            return entry.at, entry.received_at
        case _:
            return (entry.at,)


def _kind_of(entry: bytes) -> str | None:
    try:
        return decode_foreign(entry, _EntryKind).kind
    except ValueError:
        return None
