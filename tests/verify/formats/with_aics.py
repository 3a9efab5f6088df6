"""Ask aics-tlog, which is installed apart.

`... verify DIRECTORY KEY` verifies the files of a log, as `verify.go`.
`... cosign NOTE LOG_KEY WITNESS_KEY` verifies a cosigned checkpoint, and prints it with a cosignature more.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import base64
import sys
from pathlib import Path

import aics_tlog
from aics_tlog.verified import audit_tiles
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WITNESS = Ed25519PrivateKey.from_private_bytes(bytes([2] * 32))


def refuse_unless(is_valid: bool, what: str) -> None:
    if not is_valid:
        raise ValueError(what)


def open_checkpoint(text: str, key: aics_tlog.VKey, *witnesses: aics_tlog.VKey) -> aics_tlog.Checkpoint:
    note = aics_tlog.parse_note(text)
    verified = aics_tlog.verify_checkpoint(note, key, witnesses, len(witnesses), expected_origin=key.name)
    refuse_unless(verified.ok, verified.error)
    return aics_tlog.parse_checkpoint(note.text)


def verify_proof(text: str, tiles: aics_tlog.TileReader, key: aics_tlog.VKey) -> None:
    proof, _, signed = text.partition("\n\n")
    head = open_checkpoint(signed, key)
    lines = [line for line in proof.split("\n")[1:] if not line.startswith("extra ")]
    index, hashes = int(lines[0].removeprefix("index ")), [base64.b64decode(line, validate=True) for line in lines[1:]]
    entry = aics_tlog.read_entry(tiles, index, head.size)
    is_valid = aics_tlog.verify_leaf_inclusion(entry, index, head.size, hashes, head.root)
    refuse_unless(is_valid, "the proof does not lead to the root")


def verify(directory: str, vkey: str) -> None:
    log, key, tiles = Path(directory), aics_tlog.parse_vkey(vkey), aics_tlog.FileSystemTileReader(Path(directory))
    head = open_checkpoint((log / "checkpoint").read_text(encoding="utf-8"), key)
    if (log / "old-checkpoint").exists():
        old = open_checkpoint((log / "old-checkpoint").read_text(encoding="utf-8"), key)
        proof = aics_tlog.consistency_proof_from_tiles(tiles, old.size, head.size)
        is_valid = aics_tlog.verify_consistency(old.size, head.size, old.root, head.root, proof)
        refuse_unless(is_valid, "the old checkpoint is of another tree")
    for path in log.glob("proofs/*"):
        verify_proof(path.read_text(encoding="utf-8"), tiles, key)
    audit_tiles(tiles, head.size, head.root)


def cosign(text: str, log_vkey: str, witness_vkey: str) -> None:
    head = open_checkpoint(text, aics_tlog.parse_vkey(log_vkey), aics_tlog.parse_vkey(witness_vkey))
    _, line = aics_tlog.sign_cosignature(WITNESS, "aics", 1679315147, head.origin, head.size, head.root)
    note = aics_tlog.parse_note(text)
    print(aics_tlog.Note(note.text, (*note.signatures, line)).serialise(), end="")


if __name__ == "__main__":
    try:
        {"verify": verify, "cosign": cosign}[sys.argv[1]](*sys.argv[2:])
    except (ValueError, OSError) as error:
        print("refused:", error)
        sys.exit(3)
