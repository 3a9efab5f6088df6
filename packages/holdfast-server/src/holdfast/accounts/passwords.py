"""Passwords: hashed by argon2id, two at a time, in threads outside the event loop.

Addresses have turns, and few may wait.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import STRANGERS, Caller, Owner
from holdfast.kit.running.admission import Admission
from holdfast.kit.running.slots import Slots

T = TypeVar("T")

HASHER = PasswordHasher()
NICENESS = 5
"""The niceness of the threads that hash, on Linux: else health checks wait for them where there are few cores."""

MAX_CONCURRENT_PASSWORDS = 2
"""Each hash needs 64 MiB and 0.1 s of a core, which other requests need too."""

MAX_WAITING = 20
"""Passwords of one address or network that wait, so that none waits longer than some seconds. More are refused."""

MAX_WAITING_TOGETHER = 100
"""Passwords that wait. For more, the addresses with the most waiting passwords give way."""

WAIT_SECONDS = 15
"""The maximum number of seconds that a password waits."""

PASSWORDS = Bound(
    name="Passwords that are hashed or checked",
    service="both",
    total=f"{MAX_CONCURRENT_PASSWORDS} at a time; {MAX_WAITING_TOGETHER} wait",
    tenant="that of the address",
    address=f"1 at a time, in turns of addresses; {MAX_WAITING} wait, also of a /48",
    reserved="links to sign in need no password",
    stranger="One turn, of about 0.1 seconds: another address waits for one password of this one.",
)

_admission = Admission()
_slots = Slots(
    PASSWORDS,
    MAX_CONCURRENT_PASSWORDS,
    timeout=WAIT_SECONDS,
    max_waiting=MAX_WAITING,
    max_waiting_together=MAX_WAITING_TOGETHER,
    retry_after=_admission.retry_after,
)


def _let_others_go_first() -> None:
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_threads = ThreadPoolExecutor(MAX_CONCURRENT_PASSWORDS, "password", _let_others_go_first)


async def hash_password(caller: Caller, password: str) -> str:
    """Return the hash of a password, for the database. Raises `service_unavailable` if too many wait."""
    async with place(caller):
        return await _in_thread(partial(HASHER.hash, password))


async def is_match(password: str, hash: str | None) -> bool:
    """Return whether a password has this hash. Without a hash the answer is False, and takes as long.

    The caller has a `place`.
    """
    return await _in_thread(partial(_matches, password, hash))


@contextlib.asynccontextmanager
async def place(caller: Caller) -> AsyncGenerator[None]:
    """The turn of a caller, for as long as an `async with` block lasts.

    It begins before the hash is read: else hundreds would read one for each that is checked.

    Raises `service_unavailable` if too many wait, and `client_gone`.
    """
    async with _slots.of(_owner(caller)):
        with _admission.work():
            yield


def require_room(caller: Caller) -> None:
    """Raise `service_unavailable` if too many passwords wait for one more of this caller."""
    _slots.require_room(_owner(caller))


def _owner(caller: Caller) -> Owner:
    owner = caller.owner
    return owner if owner[0] == STRANGERS else (STRANGERS, *owner)


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
