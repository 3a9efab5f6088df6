"""A log that has two versions, as a service would sign them that shows different people different logs."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import AddCheckpoint
from holdfast_verify.formats.signed_note import Checkpoint, Signer, Verifier
from holdfast_verify.formats.tree import AppendedTree, append, consistency_proof, leaf_hash, tree_root

ORIGIN = "events.example.com/log/heads"
SIGNER = Signer(ORIGIN, Ed25519PrivateKey.from_private_bytes(b"1" * 32))
KEY = Verifier(SIGNER.vkey)
SIZE = 600
FORKED_AT = 5
"""The number of entries that both versions have."""


def _tree(version: str) -> AppendedTree:
    entries = [f"{'entry' if index < FORKED_AT else version} {index}".encode() for index in range(SIZE)]
    return append(0, {}, [leaf_hash(entry) for entry in entries])


TREES = {version: _tree(version) for version in ("one", "other")}


def signer(number: int) -> Signer:
    """The key of another such log."""
    return Signer(f"{ORIGIN}/{number}", SIGNER.private_key)


def note(size: int, version: str = "one", signer: Signer = SIGNER) -> str:
    """The signed head of a version of the log."""
    return signer.sign(Checkpoint(signer.name, size, tree_root(size, TREES[version].tiles)).text)


def proof(old_size: int, size: int, version: str = "one") -> list[bytes]:
    return consistency_proof(old_size, size, TREES[version].tiles)


def request(old_size: int, size: int, version: str = "one", signer: Signer = SIGNER) -> AddCheckpoint:
    """What the service asks a witness for, after it has cosigned the old size."""
    return AddCheckpoint(old_size, proof(old_size, size, version), note(size, version, signer))
