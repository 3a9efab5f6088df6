"""Passwords: hashed by argon2id, two at a time, in threads outside the event loop. Few may wait."""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.running.admission import Admission

T = TypeVar("T")

HASHER = PasswordHasher()
_hashing_slots = asyncio.Semaphore(2)
"""At most two hashes run at once: each needs 64 MiB and 0.1 s of a core, which other requests need too."""

MAX_WAITING = 20
"""Hashes that are begun or wait, so that none waits longer than some seconds. More are refused."""

_admission = Admission()


async def hash_password(password: str) -> str:
    """Return the hash of a password, for the database."""
    return await _in_turn(partial(HASHER.hash, password))


async def is_match(password: str, hash: str | None) -> bool:
    """Return whether a password has this hash. Without a hash the answer is False, and takes as long."""
    return await _in_turn(partial(_matches, password, hash))


def require_room() -> None:
    """Raise `service_unavailable` if too many hashes wait. `hash_password` and `is_match` raise it too."""
    if _admission.in_progress >= MAX_WAITING:
        raise SERVICE_UNAVAILABLE(
            "Too many passwords are being checked at this moment.", retry_after=_admission.retry_after()
        )


async def _in_turn(work: Callable[[], T]) -> T:
    async def wait() -> T:
        async with _hashing_slots:
            return await asyncio.to_thread(work)

    require_room()
    return await _admission.counted(wait)()


def _matches(password: str, hash: str | None) -> bool:
    try:
        return HASHER.verify(hash or _no_hash(), password) and hash is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _no_hash() -> str:
    return HASHER.hash("nobody has this password")
