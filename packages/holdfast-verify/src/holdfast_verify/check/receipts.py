"""Receipts and proof files: what a person holds, and what it proves without the service."""

import re
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta, Struct

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.audit.entries import (
    AuditedEntry,
    Commitment,
    Moment,
    decode_foreign,
    parse_entry,
)
from holdfast_verify.check.log_source import VerificationError
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats.entries import commitment, person_text
from holdfast_verify.formats.proof_file import ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import decode_base64, parse_checkpoint
from holdfast_verify.formats.tree import leaf_hash, verify_inclusion

PROMISES = re.compile(r"holdfast promises v1\n(\S+)/log/promises\n(0|[1-9]\d{0,9})\n(\S+)\n")
LOG_ADDRESS = re.compile(r"https?://[^/\s]+(?:/\S*)?/log/(event|queue)s/(\d+)")
PERSON_PATH = re.compile(r"/api/(?:registrations/\d+|queues/\d+/status)/([^/]+)")


class ForeignPromise(Struct):
    """What a service has promised: that the log will have an arrival within a time. It is checked, not trusted."""

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


class ForeignReceipt(Struct):
    """The member `receipt` of the answer to a registration or a join, as a service wrote it."""

    promise: str
    nonce: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
    signed: str
    index: Annotated[int, Meta(ge=0)] = 0
    path: list[str] = []

    @property
    def content(self) -> ForeignPromise:
        """What is promised. Raises `VerificationError`."""
        try:
            return decode_foreign(self.promise, ForeignPromise)
        except ValueError as error:
            raise VerificationError(f"The promise of the receipt cannot be read: {error}.") from error


class _NextStep(Struct):
    url: str = ""


class _Answer(Struct):
    """The whole answer, which names the person in the address to poll."""

    receipt: ForeignReceipt
    next: _NextStep = msgspec.field(default_factory=_NextStep)
    status: str | None = None


class ForeignReceiptFile(Struct):
    """A receipt, and the public id of the person if the file has it.

    status    of a file that the service made later: what it showed then as the status; None: it does not say
    """

    receipt: ForeignReceipt
    person: str | None = None
    status: str | None = None


def parse_file(content: bytes) -> ForeignReceiptFile | ProofFile:
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
            return ForeignReceiptFile(decode_foreign(content, ForeignReceipt))
        except ValueError as error:
            raise VerificationError(f"The file is neither a receipt nor a proof file: {error}.") from error
    match = PERSON_PATH.fullmatch(path)
    return ForeignReceiptFile(answer.receipt, unquote(match[1]) if match else None, answer.status)


def check_receipt(file: ForeignReceiptFile, person: str | None, key: TrustedKey) -> list[AuditFinding]:
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
