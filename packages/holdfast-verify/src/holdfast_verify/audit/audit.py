"""The audit of a public log: it replays the entries, and finds each that breaks a rule of the order.

It needs nothing but the entries, in their order. Whether these are the ones that the service has signed is checked
elsewhere: by the hashes (the folder `check`). docs/events/fairness.md lists the rules.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from holdfast_verify.audit.entries import (
    ArrivalEntry,
    AuditedEntry,
    ChangeEntry,
    CloseEntry,
    ConfirmationsEntry,
    DrawEntry,
    EarlierLog,
    FreezeEntry,
    OpenEntry,
    PlaceEntry,
    ReleaseEntry,
    SealEntry,
    UnknownKind,
    parse_entry,
)
from holdfast_verify.audit.place_replay import BrokenRule, ParallelReplays, PlaceReplay
from holdfast_verify.formats.entries import FORMAT, timestamp
from holdfast_verify.formats.signed_note import Checkpoint, InvalidNote, encode_base64, parse_checkpoint

MAX_DELAY_SECONDS = 60
"""Seconds within which the service promises to log what it has received."""

MAX_FINDINGS = 20
"""Findings by each rule that are kept. Further ones are counted."""

FindingKind = Literal["fraud", "late", "notice"]

KINDS: Mapping[str, FindingKind] = {"late": "late", "unnumbered": "notice"}
"""The kinds of findings by rules. Those of all other rules are frauds."""


class AuditFinding(Struct, omit_defaults=True):
    """What is wrong with a log.

    kind      fraud: a rule of the order is broken; late: the service was slower than it promised; notice: something
              that cannot be judged
    rule      the rule, in one word
    message   a sentence
    index     the index of the entry, from 0
    number    the number of the person or visitor
    log       the origin of the log, if it is not the one that was named to be checked
    """

    kind: FindingKind
    rule: str
    message: str
    index: int | None = None
    number: int | None = None
    log: str | None = None


class Audit:
    """The audit of one log. `read` is called with each entry, then `end`.

    origin     the origin of the checkpoint; None: any
    arrivals   the number of arrivals by outcome, without people who wait for a draw; of a queue under `joined`
    changes    the number of changes of people by who made them
    released   the last ticket that was let in
    """

    def __init__(self, origin: str | None = None) -> None:
        self.origin = origin
        self.findings: list[AuditFinding] = []
        self.further_findings = 0
        self._by_rule = Counter[str]()
        self.entries = 0
        self.opening: OpenEntry | None = None
        self.closing: CloseEntry | None = None
        self.arrivals = Counter[str]()
        self.changes = Counter[str]()
        self._places: ParallelReplays | None = None
        self.released = 0
        self.last_number = 0
        self.largest_delay = dt.timedelta(0)
        self.slowest_number: int | None = None
        self.last_seal: SealEntry | None = None
        self._oldest: ArrivalEntry | None = None
        self._last_at: dt.datetime | None = None
        self._cut: dt.datetime | None = None
        self._last: AuditedEntry | None = None

    @property
    def places(self) -> PlaceReplay | None:
        """The seats and the waiting list of an event, after the last entry that was read."""
        return self._places.main if self._places else None

    @property
    def earlier_log(self) -> EarlierLog | None:
        """The log that this one follows, as it says itself."""
        return self.opening.after if self.opening else None

    @property
    def may_be_drawn(self) -> bool:
        """Whether the log has a draw, or could still name one, as far as it is read."""
        if self.places is None or self.opening is None or self.places.is_by_draw:
            return True
        return self.last_number < self.opening.first_number

    def read(self, entry: bytes) -> AuditedEntry | None:
        """Replay the next entry. Returns it; None if it cannot be read."""
        index, self.entries = self.entries, self.entries + 1
        try:
            parsed = parse_entry(entry)
        except UnknownKind as error:
            self._last = None
            self._add("notice", "form", f"Entry {index} {error}: a newer program may.", index)
            return None
        except ValueError as error:
            self._last = None
            self._add("fraud", "form", f"Entry {index} {error}.", index)
            return None
        for rule, message, number in self._replay(parsed, index):
            self._add(KINDS.get(rule, "fraud"), rule, f"Entry {index}: {message}", index, number)
        self._last = parsed
        return parsed

    def end(self) -> None:
        """Judge what only the end of the log shows."""
        if self.opening is None:
            self._add("fraud", "form", "The log does not begin with an open entry.")
        if self._places:
            for rule, message, number in self._places.end_changes():
                self._add("fraud", rule, f"At the end of the log: {message}", None, number)
        if self.entries and not isinstance(self._last, SealEntry):
            self._add("notice", "form", "The last entry is no seal: when it was logged is unknown.", self.entries - 1)

    def _add(
        self, kind: FindingKind, rule: str, message: str, index: int | None = None, number: int | None = None
    ) -> None:
        self._by_rule[rule] += 1
        if self._by_rule[rule] <= MAX_FINDINGS:
            self.findings.append(AuditFinding(kind, rule, message, index, number))
        else:
            self.further_findings += 1

    def _replay(self, entry: AuditedEntry, index: int) -> Iterator[BrokenRule]:
        if isinstance(entry, OpenEntry):
            yield from self._open(entry, index)
            return
        if self.opening is None:
            return  # The end says so once.
        if self.closing and not isinstance(entry, SealEntry):
            yield BrokenRule("form", "The log goes on after it was closed.")
        match entry:
            case ArrivalEntry():
                yield from self._arrive(entry)
            case ChangeEntry():
                yield from self._change(entry)
            case SealEntry():
                yield from self._seal(entry)
            case ReleaseEntry():
                yield from self._release(entry)
            case CloseEntry():
                self.closing = entry
            case PlaceEntry():
                yield from self._place(entry)
            case FreezeEntry() | ConfirmationsEntry():
                pass  # `holdfast_verify/audit/draw.py` judges draws
            case DrawEntry():
                if self._places:
                    self._places.end_draw()

    def _open(self, entry: OpenEntry, index: int) -> Iterator[BrokenRule]:
        if index:
            yield BrokenRule("form", "A log is opened only by its first entry.")
            return
        self.opening = entry
        self.last_number, self.released = entry.first_number - 1, entry.released
        if entry.of == "event":
            self._places = ParallelReplays(entry)
        if entry.format != FORMAT:
            yield BrokenRule("form", f"The format is {entry.format}; this program knows {FORMAT}.")
        if self.origin is not None and entry.origin != self.origin:
            yield BrokenRule("form", f"The log was opened as {entry.origin}, and is signed as {self.origin}.")
        if entry.released > self.last_number:
            yield BrokenRule("release", f"Ticket {entry.released} was let in before it was given.")

    def _arrive(self, entry: ArrivalEntry) -> Iterator[BrokenRule]:
        number = entry.number
        if number != self.last_number + 1:
            message = f"Number {number} comes after number {self.last_number}: numbers have no gaps."
            yield BrokenRule("numbers", message, number)
        if self._last_at and entry.at < self._last_at:
            message = f"Number {number} arrived at {timestamp(entry.at)}, before the one with the number before it."
            yield BrokenRule("time", message, number)
        if self._cut and entry.at <= self._cut:
            message = (
                f"Number {number} arrived at {timestamp(entry.at)}, but an earlier seal says that all who came up to "
                f"{timestamp(self._cut)} were logged."
            )
            yield BrokenRule("cut", message, number)
        self.last_number, self._last_at = number, entry.at
        if self._oldest is None or entry.at < self._oldest.at:
            self._oldest = entry
        if self._places is None:
            self.arrivals["joined"] += 1
        else:
            if entry.outcome:
                self.arrivals[entry.outcome] += 1
            yield from self._places.add_arrival(number, entry.outcome)

    def _place(self, entry: PlaceEntry) -> Iterator[BrokenRule]:
        if self._places is None:
            yield BrokenRule("form", "A queue gives no places.")
            return
        self.arrivals[entry.outcome] += 1
        yield from self._places.add_drawn_outcome(entry.number, entry.outcome)

    def _change(self, entry: ChangeEntry) -> Iterator[BrokenRule]:
        if entry.before:
            self.changes[entry.by] += 1
        if self._places:
            yield from self._places.add_change(entry)

    def _seal(self, entry: SealEntry) -> Iterator[BrokenRule]:
        if self._places:
            yield from self._places.end_changes()
        if self._oldest:
            delay, number = entry.at - self._oldest.at, self._oldest.number
            if delay > self.largest_delay:
                self.largest_delay, self.slowest_number = delay, number
            if delay.total_seconds() > MAX_DELAY_SECONDS:
                message = f"Number {number} was logged {delay.total_seconds():.0f} seconds after it arrived."
                yield BrokenRule("late", message, number)
            self._oldest = None
        self.last_seal = entry
        if entry.cut and (self._cut is None or entry.cut > self._cut):
            self._cut = entry.cut

    def _release(self, entry: ReleaseEntry) -> Iterator[BrokenRule]:
        if self.places:
            yield BrokenRule("form", "An event lets no visitor in by tickets.")
            return
        if entry.first != self.released + 1 or entry.last < entry.first:
            message = f"Tickets {entry.first} to {entry.last} were let in after ticket {self.released}."
            yield BrokenRule("release", message, entry.first)
        if entry.last > self.last_number:
            message = f"Ticket {entry.last} was let in; the last that was given is {self.last_number}."
            yield BrokenRule("release", message, entry.last)
        self.released = max(self.released, entry.last)


class HeadAudit:
    """The audit of the head log: finds each entry that takes back what an earlier one says of the same log.

    `read` is called with each entry.

    heads          the last head of each log, by origin; at first those of the head log before
    earlier_log    the first entry, if it is the head of a head log: the one before a restored backup
    """

    def __init__(self, heads: Mapping[str, Checkpoint] | None = None) -> None:
        self.findings: list[AuditFinding] = []
        self.further_findings = 0
        self.entries = 0
        self.earlier_log: EarlierLog | None = None
        self.heads = dict(heads or {})

    def read(self, entry: bytes) -> None:
        """Compare the next entry with the earlier ones."""
        index, self.entries = self.entries, self.entries + 1
        try:
            head = parse_checkpoint(entry.decode())
        except (InvalidNote, UnicodeDecodeError):
            self._add("form", f"Entry {index} is not the head of a log.", index)
            return
        if index == 0 and "/log/heads" in head.origin:
            self.earlier_log = EarlierLog(head.origin, head.size, encode_base64(head.root))
        before = self.heads.get(head.origin)
        if before is None or head.size > before.size:
            self.heads[head.origin] = head
        elif head.size < before.size:
            message = f"Entry {index}: the log {head.origin} has {head.size:,} entries, after it had {before.size:,}."
            self._add("heads", message, index)
        else:
            difference = "again" if head == before else "with another root"
            message = f"Entry {index}: the log {head.origin} has {head.size:,} entries as before, {difference}."
            self._add("heads", message, index)

    def end(self) -> None:
        """Judge what only the end of the log shows: nothing."""

    def _add(self, rule: str, message: str, index: int) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(AuditFinding("fraud", rule, message, index))
        else:
            self.further_findings += 1
