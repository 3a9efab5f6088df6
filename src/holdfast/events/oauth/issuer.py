"""Access tokens of an authorization server: JWTs (RFC 9068) that it signed, for this service.

Its keys are remembered and re-read in time, so that a new key is known at once and a removed one is soon forgotten,
whatever is sent here. The clock is this machine's, which its server shares within `LEEWAY` seconds.
"""

import asyncio
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jwa import JWS_ALGORITHMS, JWSAlgModel
from joserfc.util import urlsafe_b64decode
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.events.oauth import jwks
from holdfast.events.oauth.jwks import Key
from holdfast.events.oauth.model import SCOPES, AccessClaims, Subject
from holdfast.events.settings import Settings
from holdfast.events.users.model import Email, canonical
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.tokens import InvalidToken

REMEMBERED = 300.0
"""Seconds the keys are believed, and what was verified with them."""

COOL_DOWN = 10.0
"""Seconds between two readings at least, whatever anybody sends."""

LAST_GOOD = 3600.0
"""Seconds the keys are good for while the server cannot be reached."""

LEEWAY = 30
"""Seconds by which clocks may differ."""

CAPACITY = 10_000
"""Verified tokens that are remembered."""

ALGORITHMS: Mapping[str, JWSAlgModel] = {
    each.name: each
    for each in JWS_ALGORITHMS
    if each.name in "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split()
}
"""What a token may be signed with: nothing that a public key could be made to do."""

TYPES = frozenset({None, "at+jwt", "application/at+jwt", "jwt"})
"""The media types an access token may have in its header, in lower case; None is none."""

_SHAPE = re.compile(r"[A-Za-z0-9_-]{1,2048}\.[A-Za-z0-9_-]{1,16384}\.[A-Za-z0-9_-]{1,1400}")

log = structlog.get_logger()


class _Header(Struct):
    """The header of a token. Whatever else it has, such as keys of its own or addresses of them, is not looked at."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Raw | UnsetType = UNSET


class _Claims(Struct):
    """The claims of a token."""

    iss: str
    aud: str | list[str]
    sub: Subject
    exp: float
    nbf: float | None = None
    iat: float | None = None
    scope: str | list[str] | None = None
    scp: str | list[str] | None = None
    email: Any = None
    email_verified: Any = None


class _Token(NamedTuple):
    """A token taken apart."""

    algorithm: JWSAlgModel
    kid: str | None
    signed: bytes
    signature: bytes
    claims: bytes


@dataclass(frozen=True)
class _Keys:
    """The keys as they were at `read_at` of this process's clock, and what they verified."""

    keys: Sequence[Key]
    read_at: float
    verified: dict[bytes, AccessClaims] = field(default_factory=dict[bytes, AccessClaims])

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at

    def signed(self, token: _Token) -> bool:
        """Whether one of the keys signed a token; False if it may have been one that is not known yet.

        Raises `InvalidToken` when that cannot be.
        """
        named = [key for key in self.keys if token.kid is None or key.kid == token.kid]
        if any(_verifies(key, token) for key in named):
            return True
        if named and token.kid is not None:
            raise InvalidToken("The signature of the access token is wrong.")
        return False

    def remember(self, fingerprint: bytes, claims: AccessClaims) -> None:
        if len(self.verified) >= CAPACITY:
            self.verified.clear()
        self.verified[fingerprint] = claims


class Issuer:
    """Verifies the access tokens of one authorization server.

    name        its issuer identifier, byte for byte; where it publishes its keys follows from that
    audience    whom its tokens must be for
    """

    def __init__(self, name: str, audience: str) -> None:
        self.name = name
        self.audience = audience
        self._keys: _Keys | None = None
        self._asked_at = -math.inf
        self._asking = asyncio.Lock()

    async def verify(self, token: str) -> AccessClaims:
        """What an access token says. Raises `InvalidToken`, and `service_unavailable` where only the server knows."""
        if not _SHAPE.fullmatch(token):
            raise InvalidToken("This is neither an API key nor an access token.")
        keys = await self._known()
        fingerprint = sha256(token.encode()).digest()
        if claims := keys.verified.get(fingerprint):
            if claims.expires_at + LEEWAY <= time.time():
                raise InvalidToken("The access token has expired.")
            return claims
        parts = _take_apart(token)
        claims = self._judged(parts.claims)
        if not keys.signed(parts):
            keys = await self._newest()
            if not keys.signed(parts):
                raise self._unavailable() if self._failing else InvalidToken("The access token's key is not known.")
        keys.remember(fingerprint, claims)
        return claims

    def _judged(self, content: bytes) -> AccessClaims:
        """What unverified claims would say. Raises `InvalidToken` for those that are worth no signature."""
        try:
            claims = msgspec.json.decode(content, type=_Claims)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise InvalidToken("The access token does not say iss, aud, sub and exp as it should.") from error
        if claims.iss != self.name:
            raise InvalidToken(f"The access token is of another issuer than {self.name}.")
        if self.audience not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
            raise InvalidToken(f"The access token is not for {self.audience}.")
        now = time.time()
        if claims.exp + LEEWAY <= now:
            raise InvalidToken("The access token has expired.")
        if max(claims.nbf or 0, claims.iat or 0) - LEEWAY > now:
            raise InvalidToken("The access token is from the future.")
        scopes = {*_words(claims.scope), *_words(claims.scp)} & SCOPES.keys()
        return AccessClaims(claims.sub, frozenset(scopes), _verified_email(claims), claims.exp)

    @property
    def _failing(self) -> bool:
        """Whether the server could not be asked the last time."""
        return self._keys is None or self._asked_at > self._keys.read_at

    async def _known(self) -> _Keys:
        """The keys as they were a short while ago; the last good ones, while the server cannot be reached."""
        keys = self._keys
        if keys and keys.age <= REMEMBERED:
            return keys
        # One caller finds out whether a server that failed is back; the others need not wait for that.
        if not (keys and keys.age <= LAST_GOOD and self._failing and self._asking.locked()):
            keys = await self._newest()
        return keys

    async def _newest(self) -> _Keys:
        """The keys as they are now, or were when the server was asked last. Raises `service_unavailable`."""
        async with self._asking:
            if time.monotonic() - self._asked_at >= COOL_DOWN:
                await self._ask()
        if self._keys is None or self._keys.age > LAST_GOOD:
            raise self._unavailable()
        return self._keys

    async def _ask(self) -> None:
        try:
            keys = await jwks.read(self.name)
        except Exception as error:  # there is no end to the ways in which somebody else's server can fail
            self._asked_at = time.monotonic()
            log.warning("the authorization server did not give its keys", issuer=self.name, error=repr(error))
        else:
            self._asked_at = time.monotonic()
            self._keys = _Keys(keys, self._asked_at)

    def _unavailable(self) -> Problem:
        wait = math.ceil(COOL_DOWN - (time.monotonic() - self._asked_at))
        return SERVICE_UNAVAILABLE("The authorization server cannot be reached right now.", retry_after=max(wait, 1))


def configured(settings: Settings) -> Issuer | None:
    """The issuer whose tokens are accepted, if there is one."""
    if not settings.oauth_issuer:
        return None
    return Issuer(settings.oauth_issuer, settings.oauth_audience or f"{settings.base_url}/mcp")


def _take_apart(token: str) -> _Token:
    """Raises `InvalidToken` for what cannot be an access token, whoever signed it."""
    signed, _, last = token.encode().rpartition(b".")
    first, _, middle = signed.partition(b".")
    try:
        header = msgspec.json.decode(urlsafe_b64decode(first), type=_Header)
        claims, signature = urlsafe_b64decode(middle), urlsafe_b64decode(last)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise InvalidToken("This is neither an API key nor an access token.") from error
    if (header.typ and header.typ.lower()) not in TYPES:
        raise InvalidToken("This is a token, but not an access token.")
    if header.crit is not UNSET:
        raise InvalidToken("The access token wants an extension that is not known here.")
    if header.alg not in ALGORITHMS:
        raise InvalidToken("The access token is signed in a way that is not accepted here.")
    return _Token(ALGORITHMS[header.alg], header.kid, signed, signature, claims)


def _verifies(key: Key, token: _Token) -> bool:
    """Whether a key, used as it is meant to be used, signed a token."""
    try:
        token.algorithm.check_key(key)
        return token.algorithm.verify(token.signed, token.signature, key)
    except (JoseError, ValueError):
        return False


def _words(scopes: str | list[str] | None) -> Sequence[str]:
    return scopes.split() if isinstance(scopes, str) else scopes or ()


def _verified_email(claims: _Claims) -> str | None:
    if claims.email_verified is not True:
        return None
    try:
        given = msgspec.convert(claims.email, Email)
    except msgspec.ValidationError:
        return None
    email = canonical(given)
    # The Kelvin sign is not a k, though its lower case is one.
    return email if email.isascii() == given.isascii() else None
