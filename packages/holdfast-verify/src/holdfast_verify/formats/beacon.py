"""The public beacon: drand's chain `quicknet`, which signs a round every 3 seconds.

The signature of a round is not known before its time, and cannot be chosen. Every reader can verify it with the public
key of the chain. So a draw that names its round in advance cannot be steered. All values are those of the chain's
public information; signatures are BLS signatures on the curve BLS12-381 as in RFC 9380, points of G1 with 48 bytes.
"""

import datetime as dt
from hashlib import sha256

CHAIN = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
"""The hash of the chain, in hex: its name."""

PUBLIC_KEY = bytes.fromhex(
    "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
    "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
)
GENESIS = dt.datetime.fromtimestamp(1_692_803_367, dt.UTC)
"""The time of round 1."""

PERIOD = dt.timedelta(seconds=3)
SIGNATURE_BYTES = 48
MAX_ROUND = 2**53
"""The greatest round that is accepted. It is in the far future, and JSON holds it exactly."""

_DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"


class InvalidRound(ValueError):
    """A signature is not that of the round. The message is a sentence."""


def first_round(time: dt.datetime) -> int:
    """The number of the first round that is not before a time."""
    return max(0, -((GENESIS - time) // PERIOD)) + 1


def time_of(round: int) -> dt.datetime:
    """The time of a round. The beacon signs it then, or later if the beacon was stopped."""
    return GENESIS + (round - 1) * PERIOD


def message(round: int) -> bytes:
    """What the beacon signs."""
    return sha256(round.to_bytes(8, "big")).digest()


def verify(chain: str, round: int, signature: bytes) -> None:
    """Verify the signature of a round of a chain. Raises `InvalidRound`.

    Only the one encoding of the signature is accepted: another one of the same point would give another seed.
    """
    from py_arkworks_bls12381 import GT, G1Point, G2Point  # not above: few processes ever verify a round

    if chain != CHAIN:
        raise InvalidRound(f"The chain {chain} is not the beacon of draws, which is {CHAIN}.")
    if not 1 <= round <= MAX_ROUND:
        raise InvalidRound(f"The beacon has no round {round}.")
    if len(signature) != SIGNATURE_BYTES:
        raise InvalidRound(f"A signature of the beacon has {SIGNATURE_BYTES} bytes, and this one has {len(signature)}.")
    try:
        point = G1Point.from_compressed_bytes(signature)
    except ValueError as error:
        raise InvalidRound("The signature is not a point of the curve.") from error
    if point == G1Point.identity():
        raise InvalidRound("The signature is the identity point, which signs nothing.")
    if point.to_compressed_bytes() != signature:
        raise InvalidRound("The signature is not written in the one way that is allowed.")
    hashed = G1Point.hash_to_curve(message(round), _DOMAIN)
    if not GT.pairing_check([point, -hashed], [G2Point(), G2Point.from_compressed_bytes(PUBLIC_KEY)]):
        raise InvalidRound(f"The signature is not that of round {round} of the beacon.")


def randomness(signature: bytes) -> bytes:
    """The random value that the beacon publishes with a signature, 32 bytes."""
    return sha256(signature).digest()
