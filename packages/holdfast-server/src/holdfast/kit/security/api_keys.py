"""API keys: create, hash, look up.

A key is `hf_` and 43 random characters (256 bits). Only its SHA-256 is stored; a random key needs no slow hash.
"""

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INVALID_API_KEY, MISSING_API_KEY, Problem
from holdfast.kit.postgres.database import Database, Reader
from holdfast.kit.postgres.group_commit import MAX_CALLS_IN_BATCH, MAX_WAITING_CALLS, Batcher
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache

PREFIX = "hf_"
"""The prefix of every key. No other credential has it."""

CHANNEL = "api_keys"
"""The channel on which a revocation is announced; the payload is the hexadecimal hash."""

KEY_LOOK_UPS = Bound(
    name="Requests whose API key is looked up",
    service="both",
    total=f"{MAX_WAITING_CALLS}; one statement looks up {MAX_CALLS_IN_BATCH}",
    tenant="none, in order",
    address="one for each of its connections",
    reserved="-",
    stranger="Others wait for one look-up for each connection.",
)
KEY_CALLERS = cache_bound("Callers of API keys that were looked up", "both", f"{MAX_RESULTS}, for a second")

_SHAPE = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")

Authenticate = Callable[[str | None], Awaitable[Caller]]
"""Turns the credential of a request into its caller. Raises `missing_api_key` or `invalid_api_key`."""

Find = Callable[[Reader[Any], Sequence[bytes]], Awaitable[Mapping[bytes, Caller] | Mapping[bytes, Caller | Problem]]]


def new_key() -> str:
    """A new key. It must be shown only once."""
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class KeyRing:
    """Finds the caller of a raw key. Concurrent look-ups share one statement; results are cached for a second.

    find            `(reader, hashes) -> {hash: caller}` of active keys; a `Problem` says why a key is inactive
    name            the name of its look-ups in metrics
    wait_context    returns a context that is entered while a request waits for a look-up
    """

    def __init__(
        self,
        database: Database[Any],
        find: Find,
        name: str = "find_keys",
        wait_context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.wait_context = wait_context
        self._database = database
        self._find = find
        self._batches = Batcher[bytes, Caller](KEY_LOOK_UPS, name, self._look_up)
        self._callers = LookupCache(
            KEY_CALLERS, database, CHANNEL, bytes.fromhex, self._batches.submit, wait_context=wait_context
        )

    async def caller(self, key: str | None) -> Caller:
        """The caller that a key belongs to. Raises `missing_api_key` or `invalid_api_key`."""
        if not key:
            raise MISSING_API_KEY()
        if not _SHAPE.fullmatch(key):
            raise INVALID_API_KEY("This is not an API key of this service.")
        return await self._callers.get(digest(key))

    async def caller_of_digest(self, hashed: bytes) -> Caller:
        """The caller that a hash is stored for. Raises `invalid_api_key`."""
        return await self._callers.get(hashed)

    async def _look_up(self, hashes: Sequence[bytes]) -> Sequence[Caller | Problem]:
        callers = await self._database.read(lambda reader: self._find(reader, hashes))
        return [callers.get(hashed) or INVALID_API_KEY() for hashed in hashes]

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, refuse a revoked key as soon as its revocation is announced."""
        return self._callers.forgetting()


def credential(headers: Mapping[bytes, bytes]) -> str | None:
    """The credential of a request: the header X-API-Key, or else the bearer token.

    X-API-Key is for API keys: with another text in it, the credential is one that no caller has. Access tokens are
    bearer tokens (RFC 6750).
    """
    if key := headers.get(b"x-api-key"):
        text = key.decode("latin-1")
        return text if text.startswith(PREFIX) else f"X-API-Key: {text}"
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
