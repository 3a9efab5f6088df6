"""The request with which a log asks a witness for a cosignature (C2SP, tlog-witness)."""

import re
from typing import NamedTuple

from holdfast_verify.formats.signed_note import decode_base64, encode_base64
from holdfast_verify.formats.tree import HASH_BYTES

PATH = "/add-checkpoint"
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
