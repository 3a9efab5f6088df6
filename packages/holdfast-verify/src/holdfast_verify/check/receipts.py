"""Receipts and proof files: what a person holds, what it proves without the service, and whether the promise of a
receipt was kept.

`PromiseWatch` follows the arrival of a receipt through the logs, and tells what came later.
"""

import datetime as dt
import re
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta, Struct

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.audit.entries import (
    Actor,
    ArrivalEntry,
    AuditedEntry,
    ChangeEntry,
    Commitment,
    EarlierLog,
    Moment,
    OpenEntry,
    PlaceEntry,
    SealEntry,
    decode_foreign,
    parse_entry,
)
from holdfast_verify.check.log_source import VerificationError
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats.entries import commitment, person_text, timestamp
from holdfast_verify.formats.proof_file import ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import decode_base64, parse_checkpoint
from holdfast_verify.formats.tree import leaf_hash, verify_inclusion

PROMISES = re.compile(r"holdfast promises v1\n(\S+)/log/promises\n(0|[1-9]\d{0,9})\n(\S+)\n")
LOG_ADDRESS = re.compile(r"https?://[^/\s]+(?:/\S*)?/log/(event|queue)s/(\d+)")
PERSON_PATH = re.compile(r"/api/(?:registrations/\d+|queues/\d+/status)/([^/]+)")


class Promise(Struct):
    """What the service has promised: that the log will have an arrival within a time."""

    log: str
    at: Moment
    person: Commitment
    within: Annotated[int, Meta(ge=1)]
    ticket: int | None = None

    @property
    def subject(self) -> str:
        """What the arrival is at, such as `event 7`. Raises `VerificationError`."""
        match = LOG_ADDRESS.fullmatch(self.log)
        if not match:
            raise VerificationError("The receipt does not name the log of an event or of a queue.")
        return f"{match[1]} {match[2]}"


class Receipt(Struct):
    """The member `receipt` of the answer to a registration or a join."""

    promise: str
    nonce: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
    signed: str
    index: Annotated[int, Meta(ge=0)] = 0
    path: list[str] = []

    @property
    def content(self) -> Promise:
        """What is promised. Raises `VerificationError`."""
        try:
            return decode_foreign(self.promise, Promise)
        except ValueError as error:
            raise VerificationError(f"The promise of the receipt cannot be read: {error}.") from error


class _NextStep(Struct):
    url: str = ""


class _Answer(Struct):
    """The whole answer, which names the person in the address to poll."""

    receipt: Receipt
    next: _NextStep = msgspec.field(default_factory=_NextStep)
    status: str | None = None


class ReceiptFile(Struct):
    """A receipt, and the public id of the person if the file has it.

    status    of a file that the service made later: what it showed then as the status; None: it does not say
    """

    receipt: Receipt
    person: str | None = None
    status: str | None = None


def parse_file(content: bytes) -> ReceiptFile | ProofFile:
    """What a file proves. Raises `VerificationError`."""
    if content.startswith(b"c2sp.org/tlog-proof@"):
        try:
            return parse_proof_file(content.decode())
        except ValueError as error:
            raise VerificationError(f"The proof file cannot be read: {error}") from error
    try:
        answer: _Answer = decode_foreign(content, _Answer)
        path = urlsplit(answer.next.url).path
    except ValueError:
        try:
            return ReceiptFile(decode_foreign(content, Receipt))
        except ValueError as error:
            raise VerificationError(f"The file is neither a receipt nor a proof file: {error}.") from error
    match = PERSON_PATH.fullmatch(path)
    return ReceiptFile(answer.receipt, unquote(match[1]) if match else None, answer.status)


def check_receipt(file: ReceiptFile, person: str | None, key: TrustedKey) -> list[AuditFinding]:
    """What is wrong with a receipt: its signature, the path from the promise to what is signed, and the commitment.

    person    the public id of the person; without it, and if the file has none, the commitment is not opened
    """
    receipt, promise = file.receipt, file.receipt.content
    host = promise.log.partition("://")[2].partition("/log/")[0]
    try:
        signed = key.open_note(receipt.signed, f"{host}/log/promises", "The receipt")
    except BadSignature as error:
        return [AuditFinding("fraud", "signature", str(error))]
    findings: list[AuditFinding] = []
    match = PROMISES.fullmatch(signed)
    if not match or match[1] != host:
        return [
            AuditFinding("fraud", "signature", "What the receipt has signed is no list of promises of this service.")
        ]
    try:
        path = [decode_base64(hash) for hash in receipt.path]
        leaf = leaf_hash(receipt.promise.encode())
        verify_inclusion(leaf, receipt.index, int(match[2]), decode_base64(match[3]), path)
    except ValueError as error:
        findings.append(AuditFinding("fraud", "path", f"The promise is not among those that were signed: {error}"))
    person = person or file.person
    nonce = bytes.fromhex(receipt.nonce)
    if person and person_text(commitment(promise.subject, person, nonce)) != promise.person:
        findings.append(
            AuditFinding("fraud", "commitment", f"The receipt is not the one of the person with the id {person}.")
        )
    return findings


def check_proof(proof: ProofFile, key: TrustedKey) -> tuple[AuditedEntry | None, list[AuditFinding]]:
    """The entry of a proof file, and what is wrong with its signature and its path. Raises `VerificationError`."""
    if proof.extra is None:
        raise VerificationError("The proof file does not carry the entry that it proves.")
    origin = proof.checkpoint.partition("\n")[0]
    try:
        head = parse_checkpoint(key.open_note(proof.checkpoint, origin, "The head in the proof file"))
        verify_inclusion(leaf_hash(proof.extra), proof.index, head.size, head.root, proof.hashes)
    except BadSignature as error:
        return None, [AuditFinding("fraud", "signature", str(error))]
    except ValueError as error:
        return None, [AuditFinding("fraud", "path", f"The entry is not in the log: {error}", proof.index)]
    try:
        return parse_entry(proof.extra), []
    except ValueError as error:
        return None, [AuditFinding("fraud", "form", f"The entry {error}.", proof.index)]


GOT = {
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

    arrival    the arrival with the commitment of the promise
    removal    the entry that says that the registration was removed before it had a number
    status     the last status that the logs tell; None: there is none, or a visitor of a queue
    story      what came later, in sentences
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.arrival: ArrivalEntry | None = None
        self.removal: ChangeEntry | None = None
        self.index: int | None = None
        self.status: str | None = None
        self.story: list[str] = []
        self._cancelled: ChangeEntry | None = None
        self._seal: SealEntry | None = None
        self._restored: OpenEntry | None = None

    @property
    def has_entry(self) -> bool:
        return self.arrival is not None or self.removal is not None

    def read(self, index: int, entry: AuditedEntry | None) -> None:
        """Look at the next entry."""
        match entry:
            case OpenEntry(at=at, after=EarlierLog()) if at > self.promise.at:
                self._restored = entry
            case ArrivalEntry(person=person) if person == self.promise.person and self.arrival is None:
                self.arrival, self.index = entry, index
                self.status = entry.outcome or ("in_draw" if self._is_of_event() else None)
            case PlaceEntry(number=number) if self.arrival and number == self.arrival.number:
                self.status = entry.outcome
                self.story.append(f"The draw gave {GOT[entry.outcome]} at {_time(entry.at)}.")
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
        if self._cancelled:
            at_time = f"{self._cancelled.at:%H:%M} (UTC, {self._cancelled.at:%Y-%m-%d})"
            message = f"The log says that you cancelled at {at_time}. If you did not, this receipt is the evidence."
            findings.append(AuditFinding("notice", "yours", message, None, number))
        return findings

    def summary(self) -> str:
        """What the logs say of the arrival, in a line."""
        if self.arrival is None:
            return "the registration was removed before it had a number" if self.removal else "not in the log"
        got = f"got {GOT[self.arrival.outcome]}" if self.arrival.outcome else "entered"
        return f"number {self.arrival.number:,}, {got} at {_time(self.arrival.at)}, entry {self.index}"

    def last_status(self) -> str:
        """What the person has now by the logs."""
        return GOT.get(self.status or "", "a ticket" if self.arrival else "nothing")

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
        if self._restored:
            message += (
                f" A backup was restored at {_time(self._restored.at)}, which loses what came shortly before it. "
                "If that was done to get rid of it, this receipt is the evidence."
            )
            return AuditFinding("notice", "promise", message)
        return AuditFinding("fraud", "promise", message)

    def _change(self, entry: ChangeEntry) -> None:
        self.status = entry.after
        self._cancelled = entry if entry.by == "person" and entry.after == "removed" else None
        self.story.append(_sentence(entry))


def _sentence(entry: ChangeEntry) -> str:
    """The sentence about a change: who made it, and what it changed."""
    at, got = _time(entry.at), GOT.get(entry.after or "", str(entry.after))
    reason = f" ({entry.reason})" if entry.reason else ""
    who: dict[Actor, str] = {"person": "You", "organizer": "The organizer", "service": "The service"}
    if entry.after == "removed":
        verb = "cancelled" if entry.by == "person" else "removed the registration"
        return f"{who[entry.by]} {verb} at {at}, says the log{reason}."
    if entry.before == "waitlisted" and entry.by == "service":
        return f"You moved up from the waiting list at {at}, and got {got}{reason}."
    if entry.before == "held" and entry.by == "person":
        return f"You paid at {at}, and have {got}{reason}."
    return f"{who[entry.by]} changed {GOT.get(entry.before or '', 'what you had')} into {got} at {at}{reason}."


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
