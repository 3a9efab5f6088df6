"""Signed tokens of a service that verifies them on every request: short-lived JWTs, cached once verified.

The time of tokens is the database's, so processes agree on expiry.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache
from msgspec import Struct
from msgspec.structs import replace

from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.postgres.database import Database
from holdfast.kit.security.signed_tokens import SigningKeySet, SigningKeyTable, TokenType, UnknownKey

CACHE_SECONDS = 60
"""Seconds for which a process caches the stored keys, and the tokens verified with them."""

MAX_LIFETIME_SECONDS = 12 * 3600
"""The longest lifetime of a token."""

LEEWAY_SECONDS = 10
"""Seconds by which clocks may differ."""

MAX_CACHED_TOKENS = 10_000
"""The most verified tokens that a process caches."""

TOKEN_SIGNING_KEYS = SigningKeyTable("signing_keys", "ES256", MAX_LIFETIME_SECONDS)
"""The keys that sign tokens, unless others are named."""


class Claims(Struct, frozen=True):
    """The claims of every token; each type adds its own."""

    iss: str
    aud: str
    sub: str
    iat: int
    exp: int
    jti: str


C = TypeVar("C", bound=Claims)


class SignedToken(NamedTuple):
    token: str
    expires_at: datetime


VERIFIED_AGENT_TOKENS = cache_bound(
    "Access tokens of agents that were verified",
    "inventory",
    f"{MAX_CACHED_TOKENS}",
    lost="is verified again",
)

Verified = LRUCache[bytes, tuple[TokenType[Any], Any]]


@dataclass(frozen=True)
class _CurrentKeys:
    """The keys as they were at `read_at` of this process's clock, and the tokens verified with them."""

    keys: SigningKeySet
    read_at: float
    verified: Verified = field(default_factory=lambda: LRUCache(MAX_CACHED_TOKENS))

    @property
    def time(self) -> float:
        return self.keys.now + self.age

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at


class TokenSigner:
    """Signs and verifies the tokens of one service.

    issuer       the service's address, without a slash at the end
    is_issuer    whether to accept tokens of an issuer, if one of the keys signed them; None: only those of `issuer`
    """

    def __init__(
        self,
        database: Database[Any],
        issuer: str,
        is_issuer: Callable[[str], bool] | None = None,
        *,
        keys: SigningKeyTable = TOKEN_SIGNING_KEYS,
    ) -> None:
        self._database = database
        self._issuer = issuer
        self._is_issuer = is_issuer or issuer.__eq__
        self._set = keys
        self._current: _CurrentKeys | None = None
        self._reading = asyncio.Lock()

    async def sign(self, type: TokenType[C], subject: str, **claims: str) -> SignedToken:
        """A fresh token about a subject. `claims`: those that its type adds."""
        assert type.lifetime <= self._set.max_token_seconds
        current = await self._read(CACHE_SECONDS)
        issued_at = int(current.time)
        expires_at = issued_at + type.lifetime
        content = type.claims(
            iss=self._issuer,
            aud="",
            sub=subject,
            iat=issued_at,
            exp=expires_at,
            jti=secrets.token_urlsafe(16),
            **claims,
        )
        token = current.keys.sign(type, replace(content, aud=type.audience(content)))
        return SignedToken(token, datetime.fromtimestamp(expires_at, UTC))

    async def verify(self, token: str, *types: TokenType[C]) -> C:
        """The claims of a token of one of these types. Raises `InvalidToken`."""
        current = await self._read(CACHE_SECONDS)
        fingerprint = sha256(token.encode(errors="surrogatepass")).digest()
        type, claims = current.verified.get(fingerprint, (None, None))
        if type not in types or claims is None:
            type, claims = await self._verify_signature(token, types)
            current.verified[fingerprint] = type, claims
        type.require_current(claims, current.time)
        return claims

    async def _verify_signature(self, token: str, types: Sequence[TokenType[C]]) -> tuple[TokenType[C], C]:
        try:
            return (await self._read(CACHE_SECONDS)).keys.verify(token, types, self._is_issuer)
        except UnknownKey:
            # A key that was made a moment ago is read when a token first names it.
            return (await self._read(1)).keys.verify(token, types, self._is_issuer)

    async def jwks(self) -> dict[str, Any]:
        """The public keys, in the form of RFC 7517."""
        return (await self._read(CACHE_SECONDS)).keys.jwks()

    async def _read(self, max_age: float) -> _CurrentKeys:
        """The keys as they were at most `max_age` seconds ago."""
        if current := self._recent_keys(max_age):
            return current
        async with self._reading:
            if current := self._recent_keys(max_age):
                return current
            keys = await self._database.read(self._set.find_usable)
            if not keys.stored_keys:
                keys = await self._database.transact(self._set.read_or_create)
            self._current = _CurrentKeys(keys, time.monotonic())
            return self._current

    def _recent_keys(self, max_age: float) -> _CurrentKeys | None:
        return self._current if self._current and self._current.age <= max_age else None
