"""Transparency logs: Merkle trees in tiles, signed heads and proofs, in the formats of RFC 6962 and C2SP."""
