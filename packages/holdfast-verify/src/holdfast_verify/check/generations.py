"""The logs of one event or queue, oldest first. Another one follows a restored backup, or a time without a log, and
repeats the list of a draw. The end of each is compared with the beginning of the next one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from holdfast_verify.audit.audit import Audit, AuditFinding, HeadAudit
from holdfast_verify.audit.entries import (
    AuditedEntry,
    EarlierLog,
    OpenEntry,
)
from holdfast_verify.check.drawn_list import DrawnList
from holdfast_verify.check.log_reader import EarlierHead, HashResult, SignedHead, open_head, read_entries
from holdfast_verify.check.log_source import LogSource, MissingFile, generation_of
from holdfast_verify.check.options import CheckProgress
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.signed_note import encode_base64

MAX_GENERATIONS = 100
"""Logs of one event or queue that are read, the newest ones."""

EntryReader = Callable[[int, bytes, AuditedEntry | None], object]
"""Is called with the index of an entry, its text, and the entry; None if it cannot be read."""


class LogGeneration(NamedTuple):
    """A log whose signed head was read."""

    source: LogSource
    head: SignedHead

    @property
    def origin(self) -> str:
        return self.head.checkpoint.origin

    @property
    def size(self) -> int:
        return self.head.checkpoint.size


class Generations(Struct):
    """The logs that were found, oldest first.

    findings       what is wrong with those that are missing or badly signed
    not_checked    sentences about logs that are not read
    """

    logs: list[LogGeneration]
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])
    not_checked: list[str] = field(default_factory=list[str])

    @property
    def newest(self) -> LogGeneration:
        return self.logs[-1]


class ReadLog(NamedTuple):
    """A log that was read whole."""

    generation: LogGeneration
    audit: Audit | HeadAudit
    hashes: HashResult
    drawn_list: DrawnList

    @property
    def origin(self) -> str:
        return self.generation.origin


async def find_generations(source: LogSource, key: TrustedKey, subject: str = "The head of the log") -> Generations:
    """The log of a source, and all before it. Raises `VerificationError` if the head of the first cannot be read.

    subject    what the head is, for messages
    """
    head = open_head(await source.get("checkpoint"), key, subject)
    result = Generations([LogGeneration(source, head)])
    count = generation_of(head.checkpoint.origin)
    for generation in range(count - 1, 0, -1):
        earlier = source.earlier(generation)
        if earlier is None or count - generation >= MAX_GENERATIONS:
            logs = "1 earlier log was" if generation == 1 else f"{generation:,} earlier logs were"
            result.not_checked.append(f"{logs} not read: give the address of each, which ends in its number.")
            break
        try:
            head = open_head(await earlier.get("checkpoint"), key, f"The head of {earlier.name}")
        except MissingFile:
            message = f"The log {earlier.name} is not there, though a later one follows it."
            result.findings.append(AuditFinding("notice", "generations", message))
        except BadSignature as error:
            result.findings.append(AuditFinding("fraud", "signature", str(error)))
        else:
            result.logs.insert(0, LogGeneration(earlier, head))
    return result


async def read_log(
    generation: LogGeneration,
    audit: Audit | HeadAudit,
    earlier_heads: Sequence[EarlierHead],
    progress: CheckProgress,
    *readers: EntryReader,
) -> ReadLog:
    """Read a log whole, and audit it. The audit is not ended. Raises `VerificationError`."""
    drawn_list = DrawnList()

    def read(index: int, entry: bytes) -> None:
        parsed = audit.read(entry)
        parsed = None if isinstance(audit, HeadAudit) else parsed
        drawn_list.read(entry, parsed, audit)
        for reader in readers:
            reader(index, entry, parsed)

    hashes = await read_entries(
        generation.source,
        generation.head.checkpoint,
        earlier_heads,
        read,
        lambda count: progress.count(count, generation.size),
    )
    return ReadLog(generation, audit, hashes, drawn_list)


class PlaceCounts(NamedTuple):
    """How the places are between two logs."""

    seated: int
    waiting: int
    in_draw: int

    def __str__(self) -> str:
        draw = f", {self.in_draw:,} waited for the draw" if self.in_draw else ""
        return f"{self.seated:,} seats were taken, {self.waiting:,} people waited{draw}"


class Succession(NamedTuple):
    """What is wrong between two logs, and a sentence about what cannot be checked; None: nothing happened there."""

    findings: list[AuditFinding]
    not_checked: str | None = None


def check_succession(before: ReadLog, after: ReadLog) -> Succession:
    """Compare the end of a log with the beginning of the next one. Both audits have ended."""
    earlier_log = after.audit.earlier_log
    findings = _check_named_end(before, after, earlier_log) if earlier_log else []
    if isinstance(before.audit, Audit) and isinstance(after.audit, Audit) and after.audit.opening:
        result = _check_seats_and_settings(before.audit, before.origin, after.audit.opening, earlier_log)
        return Succession([*findings, *result.findings], result.not_checked)
    if earlier_log is None:
        findings.append(
            AuditFinding("fraud", "generations", f"{after.origin} does not name the end of {before.origin}.")
        )
    return Succession(findings)


def _check_named_end(before: ReadLog, after: ReadLog, earlier_log: EarlierLog) -> list[AuditFinding]:
    head = before.generation.head.checkpoint
    if earlier_log.origin != head.origin:
        message = f"{after.origin} says that it follows {earlier_log.origin}, and not {head.origin}."
    elif earlier_log.size != head.size:
        named_end = f"{head.origin} ended with {earlier_log.size:,} entries"
        message = f"{after.origin} says that {named_end}, but that log has {head.size:,} now."
    elif earlier_log.root != encode_base64(head.root):
        message = f"{after.origin} names another end of {head.origin} than that log has."
    else:
        return []
    return [AuditFinding("fraud", "consistency", message)]


def _check_seats_and_settings(
    before: Audit, before_origin: str, opening: OpenEntry, earlier_log: EarlierLog | None
) -> Succession:
    findings = list[AuditFinding]()
    if opening.first_number <= before.last_number:
        message = (
            f"{opening.origin} begins with number {opening.first_number:,}, although {before_origin} had given "
            f"number {before.last_number:,}."
        )
        findings.append(AuditFinding("fraud", "numbers", message))
    changes = _changes(before, opening)
    until = timestamp(opening.at)
    if earlier_log:  # a backup was restored
        since = f" after {timestamp(before.last_seal.at)}" if before.last_seal else ""
        gap = f"A backup was restored at {until}. What the service did{since} and before is in no log."
        if not changes:
            return Succession(findings, gap)
    elif before.closing:
        why = "the event was a draft" if before.closing.reason == "draft" else "the log was switched off"
        gap = f"From {timestamp(before.closing.at)} to {until} {why}. What happened then is in no log."
    else:
        # Honest only if a backup was made just before the close entry was logged.
        message = f"{before_origin} does not end with a close entry, though {opening.origin} follows it."
        return Succession([*findings, AuditFinding("notice", "generations", message)])
    findings.append(AuditFinding("notice", "gap", f"{gap}{changes}"))
    return Succession(findings)


def _changes(before: Audit, opening: OpenEntry) -> str:
    """What changed between two logs, in a sentence after another one; empty: nothing that the logs tell."""
    sentences = list[str]()
    skipped = opening.first_number - before.last_number - 1
    if skipped > 0:
        sentences.append(f"{skipped:,} numbers, from {before.last_number + 1:,} on, were given then.")
    if places := before.places:
        counts_at_end = PlaceCounts(places.seated, places.waiting, places.in_draw)
        counts_at_start = PlaceCounts(opening.seated, opening.waiting, opening.in_draw or 0)
        if counts_at_end != counts_at_start:
            sentences.append(f"Before it, {counts_at_end}; after it, {counts_at_start}.")
        if (places.capacity, places.waiting_places) != (opening.capacity, opening.waiting_places):
            sentences.append(
                f"Before it there were {places.capacity:,} seats and {places.waiting_places:,} waiting places; "
                f"after it {opening.capacity:,} and {opening.waiting_places:,}."
            )
        if places.is_cancelled != (opening.event == "cancelled"):
            sentences.append("The event was cancelled then." if opening.event else "The event was cancelled before.")
    elif before.released != opening.released:
        sentences.append(f"Before it, ticket {before.released:,} was the last let in; after it, {opening.released:,}.")
    return "".join(f" {sentence}" for sentence in sentences)
