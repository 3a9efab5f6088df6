"""Passwords: hashed by argon2id, two at a time, in threads outside the event loop. Few may wait."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.running.admission import Admission, Work

T = TypeVar("T")

HASHER = PasswordHasher()
NICENESS = 5
"""The niceness of the threads that hash, on Linux: else health checks wait for them where there are few cores."""

MAX_WAITING = 20
"""Passwords that are hashed or wait, so that none waits longer than some seconds. More are refused."""

_admission = Admission()


def _let_others_go_first() -> None:
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_threads = ThreadPoolExecutor(2, "password", _let_others_go_first)
"""At most two hashes run at once: each needs 64 MiB and 0.1 s of a core, which other requests need too."""


async def hash_password(password: str) -> str:
    """Return the hash of a password, for the database. Raises `service_unavailable` if too many wait."""
    with place():
        return await _in_thread(partial(HASHER.hash, password))


async def is_match(password: str, hash: str | None) -> bool:
    """Return whether a password has this hash. Without a hash the answer is False, and takes as long.

    The caller has a `place`.
    """
    return await _in_thread(partial(_matches, password, hash))


def place() -> Work:
    """A place among those who wait, for as long as a `with` block lasts. Raises `service_unavailable` if there is none.

    It begins before the hash is read: else hundreds would read one for each that is checked.
    """
    require_room()
    return _admission.work()


def require_room() -> None:
    """Raise `service_unavailable` if there is no `place`."""
    if _admission.in_progress >= MAX_WAITING:
        raise SERVICE_UNAVAILABLE(
            "Too many passwords are being checked at this moment.", retry_after=_admission.retry_after()
        )


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads, work)


def _matches(password: str, hash: str | None) -> bool:
    try:
        return HASHER.verify(hash or _no_hash(), password) and hash is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _no_hash() -> str:
    return HASHER.hash("nobody has this password")
