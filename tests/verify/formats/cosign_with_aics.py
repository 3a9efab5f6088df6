"""Verify a cosigned checkpoint with aics-tlog, and cosign it: `... NOTE LOG_KEY WITNESS_KEY`. It prints the note."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import sys

import aics_tlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY = Ed25519PrivateKey.from_private_bytes(bytes([2] * 32))

if __name__ == "__main__":
    text, log_vkey, witness_vkey = sys.argv[1:]
    log, witness = aics_tlog.parse_vkey(log_vkey), aics_tlog.parse_vkey(witness_vkey)
    note = aics_tlog.parse_note(text)
    verified = aics_tlog.verify_checkpoint(note, log, [witness], 1, expected_origin=log.name)
    if not verified.ok:
        print("refused:", verified.error)
        sys.exit(3)
    head = aics_tlog.parse_checkpoint(note.text)
    _, line = aics_tlog.sign_cosignature(KEY, "aics", 1679315147, head.origin, head.size, head.root)
    print(aics_tlog.Note(note.text, (*note.signatures, line)).serialise(), end="")
