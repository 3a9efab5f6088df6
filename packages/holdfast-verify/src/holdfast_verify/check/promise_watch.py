"""Follows the arrival of a receipt through the logs: whether the promise was kept, and what came later."""

import datetime as dt

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.audit.entries import (
    Actor,
    ArrivalEntry,
    AuditedEntry,
    ChangeEntry,
    EarlierLog,
    OpenEntry,
    PlaceEntry,
    SealEntry,
)
from holdfast_verify.check.receipts import ForeignPromise
from holdfast_verify.formats.entries import timestamp

STATUS_TEXTS = {
    "registered": "a seat",
    "held": "a seat that has to be paid",
    "waitlisted": "a place on the waiting list",
    "rejected": "no place",
    "in_draw": "an entry in the draw",
    "pending": "no outcome yet",
    "removed": "nothing any more: the registration was removed",
}
"""What the holder of a receipt has, by status."""


class PromiseWatch:
    """Looks for the arrival of a promise while the entries of the logs are read, oldest first.

    arrival          the arrival with the commitment of the promise
    removal          the entry that says that the registration was removed before it had a number
    status           the last status that the logs tell; None: there is none, or a visitor of a queue
    later_changes    what came later, in sentences
    """

    def __init__(self, promise: ForeignPromise) -> None:
        self.promise = promise
        self.arrival: ArrivalEntry | None = None
        self.removal: ChangeEntry | None = None
        self.index: int | None = None
        self.status: str | None = None
        self.later_changes: list[str] = []
        self._cancellation: ChangeEntry | None = None
        self._seal: SealEntry | None = None
        self._restore_entry: OpenEntry | None = None

    @property
    def has_entry(self) -> bool:
        return self.arrival is not None or self.removal is not None

    def read(self, index: int, entry: AuditedEntry | None) -> None:
        """Look at the next entry."""
        match entry:
            case OpenEntry(at=at, after=EarlierLog()) if at > self.promise.at:
                self._restore_entry = entry
            case ArrivalEntry(person=person) if person == self.promise.person and self.arrival is None:
                self.arrival, self.index = entry, index
                self.status = entry.outcome or ("in_draw" if self._is_of_event() else None)
            case PlaceEntry(number=number) if self.arrival and number == self.arrival.number:
                self.status = entry.outcome
                self.later_changes.append(f"The draw gave {STATUS_TEXTS[entry.outcome]} at {_time(entry.at)}.")
            case ChangeEntry(person=person) if person == self.promise.person:
                self.removal, self.index = entry, index
                self._change(entry)
            case ChangeEntry(number=number) if self.arrival and number == self.arrival.number and entry.after:
                self._change(entry)
            case SealEntry() if self.has_entry and self._seal is None:
                self._seal = entry
            case _:
                pass

    def findings(self, now: dt.datetime) -> list[AuditFinding]:
        """Whether the promise was kept, and what only the person can judge."""
        promise = self.promise
        if not self.has_entry:
            return [self._missing((now - promise.at).total_seconds())]
        findings: list[AuditFinding] = []
        number = self.arrival.number if self.arrival else None
        at = self.arrival.at if self.arrival else self.removal.received_at if self.removal else None
        if at is not None and at != promise.at:
            message = f"The receipt says {timestamp(promise.at)}, but the log says {timestamp(at)}."
            findings.append(AuditFinding("fraud", "promise", message, self.index, number))
        if self.arrival and promise.ticket is not None and promise.ticket != number:
            message = f"The receipt promises ticket {promise.ticket}, but the log gives number {number}."
            findings.append(AuditFinding("fraud", "promise", message, self.index, number))
        delay = (self._seal.at - promise.at).total_seconds() if self._seal else 0
        if delay > promise.within:
            message = f"The arrival was logged after {delay:.0f} seconds; {promise.within} were promised."
            findings.append(AuditFinding("late", "promise", message, self.index, number))
        if self._cancellation:
            at_time = f"{self._cancellation.at:%H:%M} (UTC, {self._cancellation.at:%Y-%m-%d})"
            message = f"The log says that you cancelled at {at_time}. If you did not, this receipt is the evidence."
            findings.append(AuditFinding("notice", "yours", message, None, number))
        return findings

    def summary(self) -> str:
        """What the logs say of the arrival, in a line."""
        if self.arrival is None:
            return "the registration was removed before it had a number" if self.removal else "not in the log"
        got = f"got {STATUS_TEXTS[self.arrival.outcome]}" if self.arrival.outcome else "entered"
        return f"number {self.arrival.number:,}, {got} at {_time(self.arrival.at)}, entry {self.index}"

    def last_status(self) -> str:
        """What the person has now by the logs."""
        return STATUS_TEXTS.get(self.status or "", "a ticket" if self.arrival else "nothing")

    def _is_of_event(self) -> bool:
        return self.promise.subject.startswith("event ")

    def _missing(self, waited: float) -> AuditFinding:
        promise = self.promise
        if waited <= promise.within:
            message = f"The log does not have the arrival yet; it has {promise.within} seconds for it."
            return AuditFinding("notice", "promise", message)
        message = (
            f"The arrival at {timestamp(promise.at)} is not in the log, {waited:.0f} seconds later: it was "
            f"promised within {promise.within}."
        )
        if self._restore_entry:
            message += (
                f" A backup was restored at {_time(self._restore_entry.at)}, which loses what came shortly before it. "
                "If that was done to get rid of it, this receipt is the evidence."
            )
            return AuditFinding("notice", "promise", message)
        return AuditFinding("fraud", "promise", message)

    def _change(self, entry: ChangeEntry) -> None:
        self.status = entry.after
        self._cancellation = entry if entry.by == "person" and entry.after == "removed" else None
        self.later_changes.append(_sentence(entry))


def _sentence(entry: ChangeEntry) -> str:
    """The sentence about a change: who made it, and what it changed."""
    at, got = _time(entry.at), STATUS_TEXTS.get(entry.after or "", str(entry.after))
    reason = f" ({entry.reason})" if entry.reason else ""
    who: dict[Actor, str] = {"person": "You", "organizer": "The organizer", "service": "The service"}
    if entry.after == "removed":
        verb = "cancelled" if entry.by == "person" else "removed the registration"
        return f"{who[entry.by]} {verb} at {at}, says the log{reason}."
    if entry.before == "waitlisted" and entry.by == "service":
        return f"You moved up from the waiting list at {at}, and got {got}{reason}."
    if entry.before == "held" and entry.by == "person":
        return f"You paid at {at}, and have {got}{reason}."
    return f"{who[entry.by]} changed {STATUS_TEXTS.get(entry.before or '', 'what you had')} into {got} at {at}{reason}."


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
