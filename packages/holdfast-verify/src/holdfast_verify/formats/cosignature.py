"""Cosignatures of witnesses on the checkpoints of logs (C2SP, tlog-cosignature, with Ed25519), and the request for one.

A witness says with one: at this time, this was the largest tree of this log that I have seen, and it begins with all
that I saw before.
"""

import re
import time
from typing import NamedTuple

from holdfast_verify.formats.signed_note import (
    InvalidNote,
    Signer,
    Verifier,
    decode_base64,
    encode_base64,
    parse_note,
    signature_line,
)
from holdfast_verify.formats.tree import HASH_BYTES

COSIGNATURE = b"\x04"
"""The type of cosignatures, as vkeys and ids of keys have it."""

TIMESTAMP_BYTES = 8
MAX_TIMESTAMP = 2**63 - 1


class Cosigner(Signer):
    """The name and the private key of a witness. What it signs has the time at which it signs."""

    signature_type = COSIGNATURE

    def _signature(self, text: str) -> bytes:
        timestamp = int(time.time())
        return timestamp.to_bytes(TIMESTAMP_BYTES) + self.private_key.sign(_message(timestamp, text).encode())


class CosignatureVerifier(Verifier):
    """The public key of a witness under its name. It raises ValueError if the text is no vkey of a witness."""

    signature_type = COSIGNATURE
    type_name = "an Ed25519 key of a witness"

    def verify(self, text: str, signature: bytes) -> None:
        timestamp = _timestamp(signature)
        if not 0 < timestamp <= MAX_TIMESTAMP:
            raise InvalidNote(f"The cosignature of {self.name} has no time.")
        self._verify_signature(_message(timestamp, text), signature[TIMESTAMP_BYTES:])


class Cosignature(NamedTuple):
    """A verified cosignature: its line in a note, and its time in seconds of Unix time."""

    line: str
    timestamp: int


def find_cosignature(note: str, witness: CosignatureVerifier) -> Cosignature | None:
    """The newest cosignature of a witness on a note; None if it has not cosigned.

    It raises InvalidNote if the note is malformed, or if a cosignature under the name and id of the witness is not of
    its key.
    """
    parsed = parse_note(note)
    cosignatures = list[Cosignature]()
    for name, key_id, signature in parsed.signatures:
        if (name, key_id) == (witness.name, witness.key_id):
            witness.verify(parsed.text, signature)
            cosignatures.append(Cosignature(signature_line(name, key_id, signature), _timestamp(signature)))
    return max(cosignatures, key=lambda cosignature: cosignature.timestamp, default=None)


def _timestamp(signature: bytes) -> int:
    return int.from_bytes(signature[:TIMESTAMP_BYTES])


def _message(timestamp: int, text: str) -> str:
    """What is signed: the time and the text of the checkpoint."""
    return f"cosignature/v1\ntime {timestamp}\n{text}"


ADD_CHECKPOINT_PATH = "/add-checkpoint"
SIZE_MEDIA_TYPE = "text/x.tlog.size"
"""The media type of an answer 409: the size of the tree that the witness has cosigned last."""

MAX_BODY_BYTES = 131_072
"""The most bytes of a body: 63 hashes, and a checkpoint with 16 signatures of at most 5 kB."""

_BODY = re.compile(r"old (0|[1-9][0-9]{0,17})\n((?:[^\n]+\n){0,63})\n(.+)", re.DOTALL)


class InvalidRequest(ValueError):
    """A body is no such request. The message is a sentence."""


class AddCheckpoint(NamedTuple):
    """A request for a cosignature; nothing of it is verified.

    old_size      the size of the tree that the witness has cosigned last; 0: none
    proof         the consistency proof from that tree to the one of the checkpoint
    checkpoint    the checkpoint as a signed note
    """

    old_size: int
    proof: list[bytes]
    checkpoint: str

    @property
    def body(self) -> bytes:
        """The body of the request."""
        hashes = "".join(f"{encode_base64(hash)}\n" for hash in self.proof)
        return f"old {self.old_size}\n{hashes}\n{self.checkpoint}".encode()


def parse_add_checkpoint(body: bytes) -> AddCheckpoint:
    """The request of which this is the body. It raises InvalidRequest."""
    try:
        match = _BODY.fullmatch(body.decode())
    except UnicodeDecodeError as error:
        raise InvalidRequest("The body is not in UTF-8.") from error
    if not match:
        raise InvalidRequest(
            "The body is not an old size, at most 63 lines of a proof, an empty line and a checkpoint."
        )
    old_size, lines, checkpoint = match.groups()
    try:
        proof = [decode_base64(line) for line in lines.split("\n")[:-1]]
    except ValueError as error:
        raise InvalidRequest("A line of the proof is not in base64.") from error
    if any(len(hash) != HASH_BYTES for hash in proof):
        raise InvalidRequest(f"A hash of the proof does not have {HASH_BYTES} bytes.")
    return AddCheckpoint(int(old_size), proof, checkpoint)
