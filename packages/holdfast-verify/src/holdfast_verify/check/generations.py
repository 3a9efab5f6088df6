"""The logs of one event or queue, oldest first. Another one follows a restored backup, or a time without a log."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from holdfast_verify.audit.audit import Audit, AuditFinding
from holdfast_verify.audit.entries import AuditedEntry
from holdfast_verify.audit.heads import HeadAudit
from holdfast_verify.check.drawn_list import DrawnList
from holdfast_verify.check.log_reader import EarlierHead, HashResult, SignedHead, open_head, read_entries
from holdfast_verify.check.log_source import LogSource, MissingFile, generation_of
from holdfast_verify.check.options import CheckProgress
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey

MAX_GENERATIONS = 100
"""Logs of one event or queue that are read, the newest ones."""

EntryReader = Callable[[int, bytes, AuditedEntry | None], object]
"""Is called with the index of an entry, its text, and the entry; None if it cannot be read."""


class FoundLog(NamedTuple):
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

    findings       what is wrong with those that are missing
    not_checked    sentences about logs that are not read
    """

    logs: list[FoundLog]
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])
    not_checked: list[str] = field(default_factory=list[str])

    @property
    def newest(self) -> FoundLog:
        return self.logs[-1]


class ReadLog(NamedTuple):
    """A log that was read whole."""

    log: FoundLog
    audit: Audit | HeadAudit
    hashes: HashResult
    drawn_list: DrawnList

    @property
    def origin(self) -> str:
        return self.log.origin


async def find_generations(source: LogSource, key: TrustedKey, subject: str = "The head of the log") -> Generations:
    """The log of a source, and all before it. Raises `VerificationError` if the head of the first cannot be read.

    subject    what the head is, for messages
    """
    head = open_head(await source.get("checkpoint"), key, subject)
    result = Generations([FoundLog(source, head)])
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
            result.logs.insert(0, FoundLog(earlier, head))
    return result


async def read_log(
    log: FoundLog,
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
        log.source, log.head.checkpoint, earlier_heads, read, lambda count: progress.count(count, log.size)
    )
    return ReadLog(log, audit, hashes, drawn_list)
