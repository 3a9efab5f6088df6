"""The operations of signing in, by a mailed link or a password, and out. They have no routes and no tools of their own.

Passwords are hashed by argon2id, two at a time, in threads outside the event loop. Addresses take turns, and few may
wait.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from msgspec import Struct

from holdfast.accounts import known_browsers, sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.signin import links
from holdfast.accounts.signin.links import SignInByLink
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import STRANGERS, Caller, Owner
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.admission import Admission
from holdfast.kit.operations.operation import SIGN_IN_LANE, Operation, read, single, steps
from holdfast.kit.operations.slots import Slots
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx

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
    total=f"{MAX_CONCURRENT_PASSWORDS}; {MAX_WAITING_TOGETHER} wait",
    tenant="the share of the address",
    address=f"1, in turns; {MAX_WAITING} wait, also of a /48",
    reserved="-",
    stranger="Others wait one turn, about 0.1 seconds.",
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
    """The hash of a password, for the database. Raises `service_unavailable` if too many wait."""
    async with password_turn(caller):
        return await _in_thread(partial(HASHER.hash, password))


async def is_match(password: str, hash: str | None) -> bool:
    """Whether a password has this hash. Without a hash the answer is False, and takes as long.

    The caller has a `password_turn`.
    """
    return await _in_thread(partial(_matches, password, hash))


@contextlib.asynccontextmanager
async def password_turn(caller: Caller) -> AsyncGenerator[None]:
    """The turn of a caller, for as long as an `async with` block lasts.

    It begins before the hash is read: else hundreds would read one for each that is checked.

    Raises `service_unavailable` if too many wait, and `client_gone`.
    """
    async with _slots.slot_of(_owner(caller)):
        with _admission.work():
            yield


def require_capacity(caller: Caller) -> None:
    """Raise `service_unavailable` if too many passwords wait for one more of this caller."""
    _slots.require_capacity(_owner(caller))


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


class SignIn(Command):
    """Asks to sign in with a password.

    user_agent    the User-Agent header of the browser
    """

    email: str
    password: str
    user_agent: str


class PasswordSignInResult(Struct):
    """The secrets for a browser that signs in with a password.

    secret            the secret of the new session
    browser_secret    the secret of the browser; None if the address is not proved: a stranger may have set the password
    """

    secret: str
    browser_secret: str | None


class SignInByPassword:
    """Signs people in by passwords."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def sign_in(
        self, steps: Steps[Any], caller: Caller, command: SignIn
    ) -> Conclusion[PasswordSignInResult | None]:
        """Begin a session; return None if the password is wrong.

        It takes as long for an address that no account has.
        """
        async with password_turn(caller):
            stored_password = await steps.read(lambda reader: self._directory.find_password(reader, command.email))
            is_right = await is_match(command.password, stored_password.hash if stored_password else None)

        async def begin(tx: Any) -> PasswordSignInResult | None:
            # A transaction that ends a password, and then all sessions, also ends the session that begins here.
            if not is_right or stored_password is None or not await self._directory.still_has(tx, stored_password):
                return None
            id = stored_password.account_id
            secret = await sessions.begin(tx, id, "password", command.user_agent)
            account = (await self._directory.find(tx, [id])).get(id)
            is_owner = account is not None and account.is_proved
            return PasswordSignInResult(
                secret, await known_browsers.note_browser(tx, id, command.email) if is_owner else None
            )

        return await steps.conclude(begin)


class EndSessions(Command):
    """Asks to end a session of an account; without an id all its sessions."""

    account_id: int
    id: int | None = None


class ListSessions(Command):
    """Asks for the sessions of an account."""

    account_id: int


async def end_sessions(tx: Tx[Any], caller: Caller, command: EndSessions) -> None:
    """End one session of an account, or all of them."""
    await sessions.end(tx, command.account_id, command.id)


async def list_sessions(reader: Reader[Any], caller: Caller, command: ListSessions) -> list[sessions.SessionRow]:
    """The open sessions of an account."""
    return await sessions.list_open(reader, command.account_id)


class SignInOperations:
    """The sign-in operations for the accounts of a service."""

    def __init__(self, directory: Directory) -> None:
        operation = partial(Operation, lane=SIGN_IN_LANE)
        self.send_link = operation("ask_sign_in_link", None, single(links.send_sign_in_link))
        self.get_link = operation("get_sign_in_link", None, read(links.get))
        self.use_link = operation("sign_in_by_link", None, single(SignInByLink(directory).use))
        self.by_password = Operation(
            "sign_in_by_password", None, steps(SignInByPassword(directory).sign_in), lane=SIGN_IN_LANE
        )
        self.get_known_browser = operation("get_known_browser", None, read(known_browsers.is_known_browser))
        self.list_sessions = operation("list_sessions", None, read(list_sessions))
        self.end_sessions = operation("end_sessions", None, single(end_sessions))
        self.all = (
            self.send_link,
            self.get_link,
            self.use_link,
            self.by_password,
            self.get_known_browser,
            self.list_sessions,
            self.end_sessions,
        )
