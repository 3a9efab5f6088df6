"""API keys: mint, hash, look up.

A key is `hf_` and 43 random characters (256 bits). Only its SHA-256 is stored; being random, it needs no slow hash.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from holdfast.kit.batch import Batcher
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import Caller
from holdfast.kit.problems import INVALID_API_KEY, MISSING_API_KEY

PREFIX = "hf_"
"""What every key begins with, and no other credential."""

SHOWN = 8
"""How many characters of a key remain visible in lists."""

CHANNEL = "api_keys"
"""Where a revocation is announced; the payload is the hexadecimal hash."""

TTL = 1.0
"""Seconds a look-up is remembered: the longest a revocation could go unheard while the listener reconnects."""

REMEMBERED = 10_000

_SHAPE = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")

Authenticate = Callable[[str | None], Awaitable[Caller]]
"""Turns the credential of a request into its caller. Raises `missing_api_key` or `invalid_api_key`."""

Find = Callable[[Tx[Any], Sequence[bytes]], Awaitable[Mapping[bytes, Caller]]]


def mint() -> str:
    """A fresh key, to be shown once."""
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def masked(start: str) -> str:
    """A key as lists show it: its first 8 characters, then stars."""
    return f"{start}{'*' * 8}"


class KeyRing:
    """Turns a raw key into its caller. Look-ups share one statement and are remembered for a second.

    find    `(tx, hashes) -> {hash: caller}` for the active ones among them
    name    what its look-ups are called in figures
    """

    def __init__(self, database: Database[Any], find: Find, name: str = "find_keys") -> None:
        self._database = database
        self._find = find
        self._revocations = 0
        self._known: dict[bytes, tuple[Caller, float]] = {}
        self._lookups = Batcher[bytes, Caller | None](name, self._look_up)

    async def caller(self, key: str | None) -> Caller:
        """The caller a key belongs to. Raises `missing_api_key` or `invalid_api_key`."""
        if not key:
            raise MISSING_API_KEY()
        if not _SHAPE.fullmatch(key):
            raise INVALID_API_KEY("This is not an API key of this service.")
        return await self.holder(digest(key))

    async def holder(self, hashed: bytes) -> Caller:
        """The caller a hash is stored for. Raises `invalid_api_key`."""
        known = self._known.get(hashed)
        if known and known[1] > time.monotonic():
            return known[0]
        revocations = self._revocations
        caller = await self._lookups.submit(hashed)
        if caller is None:
            raise INVALID_API_KEY()
        # A look-up that a revocation overtook is good for this request, and not worth remembering.
        if revocations == self._revocations:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[hashed] = (caller, time.monotonic() + TTL)
        return caller

    async def _look_up(self, hashes: Sequence[bytes]) -> Sequence[Caller | None]:
        async def work(tx: Tx[Any]) -> Mapping[bytes, Caller]:
            return await self._find(tx, hashes)

        found = await self._database.read(work)
        return [found.get(hashed) for hashed in hashes]

    def hearing(self) -> AbstractContextManager[None]:
        """Forget revoked keys as soon as they are announced, while the block lasts."""
        return self._database.hearing(CHANNEL, self._forget)

    def _forget(self, payload: str) -> None:
        self._revocations += 1
        if payload:
            self._known.pop(bytes.fromhex(payload), None)
        else:
            self._known.clear()
