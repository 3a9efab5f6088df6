"""Passwords: hashed by argon2id, two at a time, in threads outside the event loop."""

import asyncio
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
_hashing_slots = asyncio.Semaphore(2)
"""At most two hashes run at once: each needs 64 MiB and 0.1 s of a core, which other requests need too."""


async def hash_password(password: str) -> str:
    """Return the hash of a password, for the database."""
    async with _hashing_slots:
        return await asyncio.to_thread(HASHER.hash, password)


async def is_match(password: str, hash: str | None) -> bool:
    """Return whether a password has this hash. Without a hash the answer is False, and takes as long."""
    async with _hashing_slots:
        return await asyncio.to_thread(_matches, password, hash)


def _matches(password: str, hash: str | None) -> bool:
    try:
        return HASHER.verify(hash or _no_hash(), password) and hash is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _no_hash() -> str:
    return HASHER.hash("nobody has this password")
