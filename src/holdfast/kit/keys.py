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

from cachetools import LRUCache

from holdfast.kit.batch import Batcher
from holdfast.kit.caller import Caller
from holdfast.kit.database import Database, Reader
from holdfast.kit.problems import INVALID_API_KEY, MISSING_API_KEY, Problem

PREFIX = "hf_"
"""Every key begins with this, and no other credential does."""

CHANNEL = "api_keys"
"""The channel on which a revocation is announced; the payload is the hexadecimal hash."""

TTL = 1.0
"""Seconds a look-up is cached: a revoked key is accepted for at most so long while the listener reconnects."""

REMEMBERED = 10_000

_SHAPE = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")

Authenticate = Callable[[str | None], Awaitable[Caller]]
"""Turns the credential of a request into its caller. Raises `missing_api_key` or `invalid_api_key`."""

Find = Callable[[Reader[Any], Sequence[bytes]], Awaitable[Mapping[bytes, Caller] | Mapping[bytes, Caller | Problem]]]


def mint() -> str:
    """Return a new key, which is to be shown once."""
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class KeyRing:
    """Finds the caller of a raw key. Concurrent look-ups share one statement; results are cached for `TTL` seconds.

    find    `(reader, hashes) -> {hash: caller}` for the hashes of active keys; a `Problem` says why one is not active
    name    the name of its look-ups in metrics
    """

    def __init__(self, database: Database[Any], find: Find, name: str = "find_keys") -> None:
        self._database = database
        self._find = find
        self._revocations = 0
        self._callers: LRUCache[bytes, tuple[Caller, float]] = LRUCache(REMEMBERED)
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
        remembered = self._callers.get(hashed)
        if remembered and remembered[1] > time.monotonic():
            return remembered[0]
        revocations = self._revocations
        caller = await self._lookups.submit(hashed)
        if caller is None:
            raise INVALID_API_KEY()
        # If a revocation arrived during the look-up, its result is used for this request but not cached.
        if revocations == self._revocations:
            self._callers[hashed] = caller, time.monotonic() + TTL
        return caller

    async def _look_up(self, hashes: Sequence[bytes]) -> Sequence[Caller | Problem | None]:
        found = await self._database.read(lambda reader: self._find(reader, hashes))
        return [found.get(hashed) for hashed in hashes]

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, remove revoked keys from the cache as soon as they are announced."""
        return self._database.listen(CHANNEL, self._forget)

    def _forget(self, payload: str) -> None:
        self._revocations += 1
        if payload:
            self._callers.pop(bytes.fromhex(payload), None)
        else:
            self._callers.clear()


def credential(headers: Mapping[bytes, bytes]) -> str | None:
    """The credential of a request: the header X-API-Key, or else the bearer token."""
    if key := headers.get(b"x-api-key"):
        return key.decode("latin-1")
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
