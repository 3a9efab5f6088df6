"""Compares how one log of an event or queue ends with how the next one begins."""

from typing import NamedTuple

from holdfast_verify.audit.audit import Audit, AuditFinding
from holdfast_verify.audit.entries import EarlierLog, OpenEntry
from holdfast_verify.check.generations import ReadLog
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.signed_note import encode_base64


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
    head = before.log.head.checkpoint
    if earlier_log.origin != head.origin:
        message = f"{after.origin} says that it follows {earlier_log.origin}, and not {head.origin}."
    elif earlier_log.size != head.size:
        ended = f"{head.origin} ended with {earlier_log.size:,} entries"
        message = f"{after.origin} says that {ended}, but that log has {head.size:,} now."
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
        ended = PlaceCounts(places.seated, places.waiting, places.in_draw)
        began = PlaceCounts(opening.seated, opening.waiting, opening.in_draw or 0)
        if ended != began:
            sentences.append(f"Before it, {ended}; after it, {began}.")
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
