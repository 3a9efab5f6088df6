"""The report of `holdfast verify`: what was checked, what the log tells, and what is wrong."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, field

from holdfast_verify.audit.audit import MAX_DELAY_SECONDS, Audit, AuditFinding, HeadAudit
from holdfast_verify.check.trusted_key import TrustedKey
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.signed_note import Checkpoint

OUTCOMES = {
    "registered": "got a seat",
    "held": "got a seat that has to be paid",
    "waitlisted": "got a place on the waiting list",
    "rejected": "got no place",
    "joined": "joined",
}
"""What arrivals got, by outcome."""


class SlowestArrival(Struct):
    """The arrival that was sealed the latest after it came."""

    seconds: float
    number: int


class VerificationReport(Struct):
    """What was found out.

    origin         the origin of the log; empty: no head of a log was checked
    checked        what was checked, by name, each as a text
    figures        what the newest log tells, by name
    findings       what is wrong; empty: nothing
    further        findings beyond those
    not_checked    sentences about what was not checked
    """

    subject: str
    origin: str = ""
    checked: dict[str, str] = field(default_factory=dict[str, str])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])
    further: int = 0
    not_checked: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {"ok": not self.findings, **msgspec.to_builtins(self)}

    def lines(self) -> Sequence[str]:
        """The report as people read it. What was not checked stands at the end."""
        rows = {**self.checked, **{name: _text(name, value) for name, value in self.figures.items()}}
        width = max(map(len, rows), default=0)
        lines = [self.subject, *(f"  {name:<{width}}  {text}" for name, text in rows.items())]
        lines += [f"{finding.kind.upper()} ({finding.rule})  {_message(finding)}" for finding in self.findings]
        lines.append(self._verdict())
        if self.not_checked:
            lines += ["Not checked:", *(f"  * {sentence}" for sentence in self.not_checked)]
        return [_printable(line) for line in lines]

    def _verdict(self) -> str:
        if not self.findings:
            return "Everything that was checked is right."
        count = len(self.findings) + self.further
        suffix = f", of which {len(self.findings)} are shown" if self.further else ""
        if all(finding.kind == "notice" for finding in self.findings):
            things = "1 thing is" if count == 1 else f"{count:,} things are"
            return f"No fraud was found, but {things} not proved either: read above{suffix}."
        return f"It is not right: {count:,} finding{'s' if count > 1 else ''}{suffix}."


def _message(finding: AuditFinding) -> str:
    return f"In {finding.log}: {finding.message}" if finding.log else finding.message


def _printable(line: str) -> str:
    """A line without what a stranger's text could do to a terminal."""
    return "".join(character if character.isprintable() else "?" for character in line)


def key_text(key: TrustedKey) -> str:
    """Which key was used. It has a short form that people can compare: the beginning of its hash."""
    short = " or ".join(sha256(public_key).hexdigest()[:16] for public_key in key.public_keys)
    return f"{short}, {'which you gave' if key.is_pinned else 'which the log itself serves'}"


def head_text(head: Checkpoint) -> str:
    """A head, with the short form of its root."""
    return f"{head.size:,} entries, root {head.root.hex()[:16]}"


def figures_of(audit: Audit | HeadAudit) -> dict[str, Any]:
    """What a replayed log tells."""
    if isinstance(audit, HeadAudit):
        return {"logs": len(audit.heads), "heads": audit.entries}
    figures: dict[str, Any] = {"arrivals": dict(audit.arrivals)}
    if places := audit.places:
        figures["places now"] = {
            "seats taken": places.seated,
            "seats": places.capacity,
            "waiting": places.waiting,
            "waiting places": places.waiting_places,
        }
        if places.in_draw:
            figures["places now"]["waiting for the draw"] = places.in_draw
        figures["changes of people"] = {f"by {actor}": count for actor, count in sorted(audit.changes.items())}
        if places.unjudged_promotions:
            figures["not judged"] = {
                "promotions while people waited who came before the log": places.unjudged_promotions
            }
    else:
        figures["tickets"] = {"last given": audit.last_number, "last let in": audit.released}
    if audit.slowest_number is not None:
        seconds = round(audit.largest_delay.total_seconds(), 3)
        figures["largest delay"] = SlowestArrival(seconds, audit.slowest_number)
    if audit.last_seal:
        figures["logged until"] = timestamp(audit.last_seal.at)
    if audit.opening and audit.opening.after:
        after = audit.opening.after
        figures["follows"] = f"{after.origin}, which ended with {after.size:,} entries"
    if audit.closing:
        figures["closed"] = f"{timestamp(audit.closing.at)}: {audit.closing.reason}"
    return figures


def _text(name: str, value: Any) -> str:
    """A figure as people read it."""
    match name, value:
        case _, SlowestArrival(seconds=seconds, number=number):
            return f"number {number:,} was logged {seconds:,} seconds after it came; {MAX_DELAY_SECONDS} are promised"
        case "places now", {**places}:
            text = "{seats taken:,} of {seats:,} seats taken, {waiting:,} of {waiting places:,} waiting places"
            draw = f", {places['waiting for the draw']:,} wait for the draw" if "waiting for the draw" in places else ""
            return text.format_map(places) + draw
        case "tickets", {**tickets}:
            return "{last given:,} given, and let in up to ticket {last let in:,}".format_map(tickets)
        case "arrivals", {**outcomes}:
            return ", ".join(f"{count:,} {OUTCOMES[outcome]}" for outcome, count in outcomes.items()) or "none"
        case _, {**figures}:
            return ", ".join(f"{_number(figure)} {text}" for text, figure in figures.items()) or "none"
        case _:
            return _number(value)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
