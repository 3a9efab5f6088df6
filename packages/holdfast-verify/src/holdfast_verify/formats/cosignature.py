"""Cosignatures of witnesses on the checkpoints of logs (C2SP, tlog-cosignature, with Ed25519).

A witness says with one: at this time, this was the largest tree of this log that I have seen, and it begins with all
that I saw before.
"""

import time
from typing import NamedTuple

from holdfast_verify.formats.signed_note import InvalidNote, Signer, Verifier, parse_note, signature_line

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
        self._verify(_message(timestamp, text), signature[TIMESTAMP_BYTES:])


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
