"""API keys: mint, hash, look up.

A key is `hf_` and 43 random characters (256 bits). Only its SHA-256 is stored; being random, it needs no slow hash.
"""

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from holdfast.kit.batch import Batcher
from holdfast.kit.caller import Caller
from holdfast.kit.database import Database, Reader
from holdfast.kit.lookups import Lookups
from holdfast.kit.problems import INVALID_API_KEY, MISSING_API_KEY, Problem

PREFIX = "hf_"
"""Every key begins with this, and no other credential does."""

CHANNEL = "api_keys"
"""The channel on which a revocation is announced; the payload is the hexadecimal hash."""

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
    """Finds the caller of a raw key. Concurrent look-ups share one statement; results are kept for a second.

    find    `(reader, hashes) -> {hash: caller}` for the hashes of active keys; a `Problem` says why one is not active
    name    the name of its look-ups in metrics
    """

    def __init__(self, database: Database[Any], find: Find, name: str = "find_keys") -> None:
        self._database = database
        self._find = find
        self._batches = Batcher[bytes, Caller](name, self._look_up)
        self._callers = Lookups(database, CHANNEL, bytes.fromhex, self._batches.submit)

    async def caller(self, key: str | None) -> Caller:
        """The caller a key belongs to. Raises `missing_api_key` or `invalid_api_key`."""
        if not key:
            raise MISSING_API_KEY()
        if not _SHAPE.fullmatch(key):
            raise INVALID_API_KEY("This is not an API key of this service.")
        return await self._callers.get(digest(key))

    async def holder(self, hashed: bytes) -> Caller:
        """The caller a hash is stored for. Raises `invalid_api_key`."""
        return await self._callers.get(hashed)

    async def _look_up(self, hashes: Sequence[bytes]) -> Sequence[Caller | Problem]:
        found = await self._database.read(lambda reader: self._find(reader, hashes))
        return [found.get(hashed) or INVALID_API_KEY() for hashed in hashes]

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, a revoked key is refused as soon as that is announced."""
        return self._callers.forgetting()


def credential(headers: Mapping[bytes, bytes]) -> str | None:
    """The credential of a request: the header X-API-Key, or else the bearer token."""
    if key := headers.get(b"x-api-key"):
        return key.decode("latin-1")
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
