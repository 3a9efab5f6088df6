"""Signed tokens of a service that verifies them on every request: short-lived JWTs, remembered once verified.

The keys are a `KeySet`; see `signing.py`. The time of tokens is the database's, so processes agree on what has expired.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from cachetools import LRUCache
from msgspec import Struct

from holdfast.kit.database import Database
from holdfast.kit.signing import InvalidToken, Keys, KeySet, UnknownKey

REMEMBERED = 60
"""Seconds a process remembers the stored keys, and what it verified with them."""

LONGEST = 12 * 3600
"""Seconds a token may be valid."""

LEEWAY = 10
"""Seconds by which clocks may differ."""

CAPACITY = 10_000
"""Verified tokens a process remembers."""

KEYS = KeySet("signing_keys", "ES256", LONGEST)
"""The keys tokens are signed with, unless others are named."""


class Claims(Struct, frozen=True):
    """What every token says; each type adds its own."""

    iss: str
    aud: str
    sub: str
    iat: int
    exp: int
    jti: str


C = TypeVar("C", bound=Claims)


@dataclass(frozen=True)
class TokenType(Generic[C]):
    """A type of token.

    typ         the media type in its header, which keeps a token from passing for one of another type
    audience    who is to believe it: a path of the issuer
    lifetime    seconds
    claims      what it says
    """

    typ: str
    audience: str
    lifetime: int
    claims: type[C]


class Signed(NamedTuple):
    token: str
    expires_at: datetime


Verified = LRUCache[bytes, tuple[TokenType[Any], Any]]


@dataclass(frozen=True)
class _CurrentKeys:
    """The keys as they were at `read_at` of this process's clock, and what was verified with them."""

    keys: Keys
    read_at: float
    verified: Verified = field(default_factory=lambda: LRUCache(CAPACITY))

    @property
    def time(self) -> float:
        return self.keys.now + self.age

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at


class Tokens:
    """Signs and verifies the tokens of one service.

    issuer       the service's address, without a slash at the end
    is_issuer    whether the token of an issuer is accepted, if one of the keys signed it; None: only those of `issuer`
    """

    def __init__(
        self,
        database: Database[Any],
        issuer: str,
        is_issuer: Callable[[str], bool] | None = None,
        *,
        keys: KeySet = KEYS,
    ) -> None:
        self._database = database
        self._issuer = issuer
        self._is_issuer = is_issuer or issuer.__eq__
        self._set = keys
        self._current: _CurrentKeys | None = None
        self._reading = asyncio.Lock()

    async def sign(self, type: TokenType[Any], subject: str, **claims: str) -> Signed:
        """A fresh token about a subject."""
        assert type.lifetime <= self._set.longest
        current = await self._read(REMEMBERED)
        issued_at = int(current.time)
        expires_at = issued_at + type.lifetime
        said: Mapping[str, Any] = {
            "iss": self._issuer,
            "aud": self._issuer + type.audience,
            "sub": subject,
            "iat": issued_at,
            "exp": expires_at,
            "jti": secrets.token_urlsafe(16),
            **claims,
        }
        return Signed(current.keys.sign(type.typ, dict(said)), datetime.fromtimestamp(expires_at, UTC))

    async def verify(self, token: str, *types: TokenType[C]) -> C:
        """The claims of a token of one of these types. Raises `InvalidToken`."""
        current = await self._read(REMEMBERED)
        fingerprint = sha256(token.encode(errors="surrogatepass")).digest()
        type, claims = current.verified.get(fingerprint, (None, None))
        if claims is None or type not in types:
            type, claims = await self._verified(token, types)
            current.verified[fingerprint] = type, claims
        if claims.exp + LEEWAY <= current.time:
            raise InvalidToken("The token has expired.")
        if claims.iat - LEEWAY > current.time:
            raise InvalidToken("The token is from the future.")
        return claims

    async def _verified(self, token: str, types: Sequence[TokenType[C]]) -> tuple[TokenType[C], C]:
        by_typ = {each.typ: each for each in types}
        try:
            typ, content = (await self._read(REMEMBERED)).keys.opened(token, by_typ)
        except UnknownKey:
            # One that was made a moment ago, because there was none, is read when it is met.
            typ, content = (await self._read(1)).keys.opened(token, by_typ)
        type = by_typ[typ]
        try:
            claims = msgspec.json.decode(content, type=type.claims)
        except ValueError as error:  # msgspec's errors are ValueErrors
            raise InvalidToken("The token is not signed by this service.") from error
        if not self._is_issuer(claims.iss) or claims.aud != claims.iss + type.audience:
            raise InvalidToken("The token is for somebody else.")
        return type, claims

    async def jwks(self) -> dict[str, Any]:
        """The public keys, as RFC 7517 has them."""
        return (await self._read(REMEMBERED)).keys.published()

    async def _read(self, patience: float) -> _CurrentKeys:
        """The keys as they were at most `patience` seconds ago."""
        if current := self._fresh(patience):
            return current
        async with self._reading:
            if current := self._fresh(patience):
                return current
            keys = await self._database.read(self._set.readable)
            if not keys.stored:
                keys = await self._database.transact(self._set.read)
            self._current = _CurrentKeys(keys, time.monotonic())
            return self._current

    def _fresh(self, patience: float) -> _CurrentKeys | None:
        return self._current if self._current and self._current.age <= patience else None
