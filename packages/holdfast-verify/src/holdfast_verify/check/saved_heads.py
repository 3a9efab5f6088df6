"""Heads of a log that were saved: in the file of an earlier check, or in the head log."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.check.generations import LogGeneration, ReadLog
from holdfast_verify.check.head_log import PublishedHeads
from holdfast_verify.check.log_reader import EarlierHead, saved_head
from holdfast_verify.check.log_source import VerificationError, generation_of, without_generation
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats.signed_note import Checkpoint, InvalidNote, encode_base64, parse_checkpoint, parse_note


class SavedHead(NamedTuple):
    """The head that an earlier check has saved in a file.

    finding    what is wrong with its signature; None: nothing
    """

    checkpoint: Checkpoint
    finding: AuditFinding | None = None

    @property
    def earlier(self) -> EarlierHead:
        return saved_head(self.checkpoint)


def read_saved_head(file: Path, key: TrustedKey) -> SavedHead | None:
    """The head in a file; None: there is no file yet. Raises `VerificationError` if it is no head."""
    if not file.exists():
        return None
    text = file.read_bytes().decode(errors="replace")
    try:
        parsed = parse_note(text)
        checkpoint = parse_checkpoint(parsed.text)
    except InvalidNote as error:
        raise VerificationError(f"The head in {file} cannot be read: {error} Name another file for --head.") from error
    try:
        key.open_note(text, checkpoint.origin, f"The head in {file}")
    except BadSignature as error:
        if key.has_signed(text, checkpoint.origin):
            raise VerificationError(f"The head in {file} was altered: {error}") from error
        whose = "that you gave" if key.is_pinned else "that the log serves now"
        message = f"The saved head is not signed with the key {whose}: the key was replaced, or the file is not of it."
        return SavedHead(checkpoint, AuditFinding("fraud", "key", message))
    return SavedHead(checkpoint)


def check_saved_head(saved: Checkpoint, logs: Sequence[ReadLog], *, has_newest: bool) -> list[AuditFinding]:
    """What is wrong with the logs of an event or queue, oldest first, of which a head was saved.

    has_newest    whether the last log is the newest that there is

    Raises `VerificationError` if the head is of another event or queue.
    """
    newest = logs[-1]
    for index, log in enumerate(logs):
        if log.origin == saved.origin:
            contradiction = log.hashes.contradicted.get(saved_head(saved))
            if contradiction is None:
                return []
            is_restored = any(later.audit.earlier_log for later in logs[index + 1 :])
            is_lost = is_restored and saved.size > log.log.size
            return [_lost_entries(saved, log.log.size)] if is_lost else [_in_log(contradiction, log, newest)]
    for log in logs:
        if (named := log.audit.earlier_log) and named.origin == saved.origin:
            if saved.size > named.size:
                return [_lost_entries(saved, named.size)]
            if saved.size == named.size and encode_base64(saved.root) != named.root:
                message = f"{log.origin} names another end of {saved.origin} than the saved head has."
                return [AuditFinding("fraud", "consistency", message)]
            return []
    if without_generation(saved.origin) != without_generation(newest.origin):
        raise VerificationError(f"The saved head is of another log, {saved.origin}. Name another file for --head.")
    if generation_of(saved.origin) > generation_of(newest.origin):
        if not has_newest:
            raise VerificationError(
                f"The saved head is of {saved.origin}: give the address of the log without a number."
            )
        message = (
            f"The saved head is of {saved.origin}, a later log than {newest.origin}. The service shows it no more: "
            "it went back to an older copy of its data."
        )
        return [AuditFinding("fraud", "consistency", message)]
    return [AuditFinding("notice", "consistency", f"{saved.origin}, of which the saved head is, could not be read.")]


def check_published_heads(
    published: PublishedHeads, logs: Sequence[LogGeneration], *, has_newest: bool
) -> list[AuditFinding]:
    """What is wrong with logs, of which the head log has these heads: larger ones, and logs that are not there.

    has_newest    whether the last log is the newest that there is
    """
    findings = [*published.findings]
    by_origin = {log.origin: log for log in logs}
    oldest = generation_of(logs[0].origin)
    for origin in published.heads:
        largest, log = published.largest(origin), by_origin.get(origin)
        if not has_newest and generation_of(origin) > generation_of(logs[-1].origin):
            continue
        if log is None and largest and generation_of(origin) >= oldest:
            message = (
                f"{largest.name.capitalize()} is a head of {origin} with {largest.size:,} entries. The service shows "
                "that log no more."
            )
            findings.append(AuditFinding("fraud", "heads", message))
        elif log and largest and largest.size > log.size:
            message = (
                f"A head of {largest.size:,} entries was published ({largest.name}), but the log has {log.size:,} now: "
                "the later ones were taken back."
            )
            findings.append(AuditFinding("fraud", "heads", message))
    return findings


def _lost_entries(saved: Checkpoint, size: int) -> AuditFinding:
    message = (
        f"The saved head of {saved.origin} has {saved.size:,} entries, but this log says that the other ended with "
        f"{size:,}: the later ones are lost, as after a restored backup. The saved head proves that there were more."
    )
    return AuditFinding("notice", "consistency", message)


def _in_log(finding: AuditFinding, log: ReadLog, newest: ReadLog) -> AuditFinding:
    return finding if log is newest else structs.replace(finding, log=log.origin)
