"""Passwords: hashed by argon2id, a few at a time, and away from the event loop."""

import asyncio
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
_working = asyncio.Semaphore(2)
"""At most two at once: each takes 64 MiB and 0.1 s of a core, which other requests need."""


async def hashed(password: str) -> str:
    """The hash to be stored."""
    async with _working:
        return await asyncio.to_thread(HASHER.hash, password)


async def matches(password: str, hash: str | None) -> bool:
    """Whether a password has a hash. Without a hash it takes as long, and is False."""
    async with _working:
        return await asyncio.to_thread(_matches, password, hash)


def _matches(password: str, hash: str | None) -> bool:
    try:
        return HASHER.verify(hash or _no_hash(), password) and hash is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _no_hash() -> str:
    return HASHER.hash("nobody has this password")
