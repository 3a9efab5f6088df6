"""Files that prove without a network that an entry is in a log (C2SP, tlog-proof)."""

import re
from typing import NamedTuple

from holdfast_verify.formats.signed_note import decode_base64, encode_base64
from holdfast_verify.formats.tree import HASH_BYTES

_PROOF_FILE = re.compile(
    r"c2sp\.org/tlog-proof@v1\n(?:extra ([^\n]+)\n)?index (0|[1-9][0-9]{0,17})\n((?:[^\n]+\n){0,63})\n(.+)", re.DOTALL
)


class InvalidProofFile(ValueError):
    """A file is not a proof. The message is a sentence."""


class ProofFile(NamedTuple):
    """What a proof file says; nothing of it is verified.

    index       the number of the leaf in its log, from 0
    hashes      the inclusion proof
    checkpoint  the checkpoint as a signed note, with all signatures
    extra       anything that helps to compute the leaf; None: nothing
    """

    index: int  # pyright: ignore[reportIncompatibleMethodOverride] # tuples have a method with the name
    hashes: list[bytes]
    checkpoint: str
    extra: bytes | None = None

    @property
    def text(self) -> str:
        """The content of the file."""
        extra = f"extra {encode_base64(self.extra)}\n" if self.extra else ""
        hashes = "".join(f"{encode_base64(hash)}\n" for hash in self.hashes)
        return f"c2sp.org/tlog-proof@v1\n{extra}index {self.index}\n{hashes}\n{self.checkpoint}"


def parse_proof_file(text: str) -> ProofFile:
    """What a proof file says. It raises InvalidProofFile if it is none; the checkpoint is any text."""
    match = _PROOF_FILE.fullmatch(text)
    if not match:
        raise InvalidProofFile("The file is not a proof that an entry is in a log.")
    extra, index, hash_lines, checkpoint = match.groups()
    try:
        hashes = [decode_base64(line) for line in hash_lines.split("\n")[:-1]]
        content = decode_base64(extra) if extra else None
    except ValueError:
        raise InvalidProofFile("A line of the proof is not in base64.") from None
    if any(len(hash) != HASH_BYTES for hash in hashes):
        raise InvalidProofFile(f"A hash of the proof does not have {HASH_BYTES} bytes.")
    return ProofFile(int(index), hashes, checkpoint, content)
