"""Access tokens of another server: JWTs (RFC 9068), checked with the keys of its documents (RFC 8414, RFC 7517).

The keys are read again regularly. Known keys stay in use until then, so no request waits for a server that is slow or
down. During that time, a token of a withdrawn key may still be accepted. A token with an unknown key waits for up to
`NEW_KEY_TIMEOUT_SECONDS` until the keys have been read again, so a new key works at once; after that it is invalid. All
such tokens wait for the same reading, and `MIN_READ_INTERVAL_SECONDS` lie between two readings, so forged tokens do not
cause frequent requests. Only before the first reading, a token is answered with `service_unavailable`: clients discard
a token that is called invalid.

Verified tokens are cached. Times are compared with the clock of this machine, which may differ from the server's by
`LEEWAY_SECONDS`.
"""

import asyncio
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog
from cachetools import TTLCache
from joserfc import jws
from joserfc.errors import JoseError
from msgspec import UNSET, Struct

from holdfast.accounts.addresses import Email, usable_address
from holdfast.events.oauth.model import SCOPES, AccessClaims, Subject
from holdfast.events.settings import Settings
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast.kit.security.signed_tokens import ALGORITHMS, REGISTRY, InvalidToken, PublicKey, has_signed, usable_keys

READ_TIMEOUT_SECONDS = 5.0
"""Seconds that reading the metadata and the keys may take together."""

MAX_DOCUMENT_BYTES = 262_144
"""The most bytes of one document."""

MAX_KEYS = 10
"""The most keys of a set that are used: a token without a key id is tried with each of them."""

T = TypeVar("T")

log = structlog.get_logger()


class _Metadata(Struct):
    issuer: str
    jwks_uri: str


class _KeySet(Struct):
    keys: list[dict[str, Any]]


async def read_key_set(issuer: str) -> list[PublicKey]:
    """The keys with which an issuer signs now. Raises `TimeoutError`, `ValueError`, or an error of the HTTP client."""
    async with asyncio.timeout(READ_TIMEOUT_SECONDS), await _client() as http:
        address = await _find_jwks_uri(http, issuer)
        keys = [*islice(usable_keys((await _get(http, address, _KeySet)).keys), MAX_KEYS + 1)]
    if len(keys) > MAX_KEYS:
        log.warning("the authorization server has more keys than are used", issuer=issuer, used=MAX_KEYS)
    return keys[:MAX_KEYS]


async def _client() -> httpx2.AsyncClient:
    """An HTTP client for one reading."""
    # Compressed answers are not accepted: they could be far larger than the counted bytes.
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    certificates = await asyncio.to_thread(trusted_certificates)
    return HttpClient(headers=headers, timeout=READ_TIMEOUT_SECONDS, verify=certificates, follow_redirects=False)


async def _find_jwks_uri(http: httpx2.AsyncClient, issuer: str) -> str:
    """The address at which an issuer publishes its keys."""
    failures: list[str] = []
    for address in addresses(issuer):
        try:
            metadata = await _get(http, address, _Metadata)
        except ValueError as error:
            failures.append(f"{address}: {error}")
            continue
        if metadata.issuer != issuer:
            failures.append(f"{address}: it is the metadata of {metadata.issuer[:200]!r}")
        elif issuer.startswith("https:") and not metadata.jwks_uri.startswith("https:"):
            failures.append(f"{address}: its jwks_uri is not https")
        else:
            return metadata.jwks_uri
    raise ValueError("; ".join(failures))


def addresses(issuer: str) -> list[str]:
    """The addresses at which the metadata of an issuer may be, in the order in which they are tried."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.removesuffix("/")
    return [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        *([f"{origin}{path}/.well-known/openid-configuration"] if path else []),
    ]


async def _get(http: httpx2.AsyncClient, address: str, kind: type[T]) -> T:
    """The document at an address. Raises `ValueError` if it does not exist or cannot be decoded."""
    content = bytearray()
    async with http.stream("GET", address) as response:
        if response.status_code != 200:
            raise ValueError(f"the answer is {response.status_code}")
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > MAX_DOCUMENT_BYTES:
                raise ValueError(f"the answer is longer than {MAX_DOCUMENT_BYTES} bytes")
    return msgspec.json.decode(content, type=kind)  # msgspec's errors are ValueErrors


LEEWAY_SECONDS = 30
"""Seconds by which clocks may differ."""

TYPES = frozenset({None, "at+jwt", "application/at+jwt", "jwt"})
"""The media types an access token may have in its header, in lower case. None: it has no type."""

_CLAIM_ERROR = re.compile(r"at `\$\.(\w+)|required field `(\w+)`")
"""Finds the claim that is wrong or missing in the message of a decoder."""


class AccessToken(NamedTuple):
    """A parsed token. Its signature and its claims are not checked yet.

    kid      the id of the key that signed it, according to the token
    parts    its header, claims and signature
    """

    kid: str | None
    parts: jws.CompactSignature

    def is_signed_with(self, key: PublicKey) -> bool:
        """Whether a key signed the token."""
        return has_signed(key, self.parts)


class _TokenHeader(Struct):
    """The header of a token. Other members, such as embedded keys or addresses of keys, are ignored."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = UNSET


class _TokenClaims(Struct):
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


def read_token(token: str) -> AccessToken:
    """Parse a token. Raises `InvalidToken` if it cannot be an access token with any signature."""
    try:
        parts = jws.extract_compact(token.encode(), registry=REGISTRY)
        header = msgspec.convert(parts.headers(), _TokenHeader)
    except (JoseError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise InvalidToken("This is neither an API key nor an access token.") from error
    if (header.typ and header.typ.lower()) not in TYPES:
        raise InvalidToken("This is a token, but not an access token.")
    if header.crit is not UNSET:
        raise InvalidToken("The access token wants an extension that is not known here.")
    if header.alg not in ALGORITHMS:
        raise InvalidToken("The access token is signed in a way that is not accepted here.")
    return AccessToken(header.kid, parts)


def check_claims(token: AccessToken, issuer: str, audience: str, now: float) -> AccessClaims:
    """The claims of a token, whose signature must still be verified.

    Raises `InvalidToken` for a token of another issuer, for another audience, or not valid at `now` (seconds since
    1970). The signature of such a token need not be verified.
    """
    claims = _claims(token.parts.payload)
    if claims.iss != issuer:
        raise InvalidToken(f"The access token is of another issuer than {issuer}.")
    if audience not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        raise InvalidToken(f"The access token is not for {audience}.")
    if max(claims.nbf or 0, claims.iat or 0) - LEEWAY_SECONDS > now:
        raise InvalidToken("The access token is from the future.")
    scopes = {*_words(claims.scope), *_words(claims.scp)} & SCOPES.keys()
    return require_unexpired(AccessClaims(claims.sub, frozenset(scopes), _verified_email(claims), claims.exp), now)


def require_unexpired(claims: AccessClaims, now: float) -> AccessClaims:
    """The claims as they are. Raises `InvalidToken` if the token has expired."""
    if claims.expires_at + LEEWAY_SECONDS <= now:
        raise InvalidToken("The access token has expired.")
    return claims


def _claims(content: bytes) -> _TokenClaims:
    try:
        return msgspec.json.decode(content, type=_TokenClaims)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        match = _CLAIM_ERROR.search(str(error))
        if match is None:
            raise InvalidToken("The access token's claims are malformed.") from error
        wrong_claim, missing_claim = match.groups()
        defect = f"lacks the claim {missing_claim}" if missing_claim else f"has a malformed claim {wrong_claim}"
        raise InvalidToken(f"The access token {defect}.") from error


def _words(scopes: str | list[str] | None) -> Sequence[str]:
    return scopes.split() if isinstance(scopes, str) else scopes or ()


def _verified_email(claims: _TokenClaims) -> str | None:
    if claims.email_verified is not True:
        return None
    try:
        email = msgspec.convert(claims.email, Email)
    except msgspec.ValidationError:
        return None
    # The Kelvin sign becomes an ASCII `k` in lower case. Such an address must not match one that was written with `k`.
    return usable_address(email) if email.rpartition("@")[0].isascii() else None


KEYS_TTL_SECONDS = 300.0
"""Seconds after which the keys are read again, at the next request."""

MIN_READ_INTERVAL_SECONDS = 1.0
"""The least number of seconds between two readings of the keys."""

NEW_KEY_TIMEOUT_SECONDS = 2.0
"""The most seconds that a token with an unknown key waits: longer than the read interval, so that keys can be read."""

MAX_CACHED_TOKENS = 10_000
"""The most verified tokens in the cache."""

CACHE_TTL_SECONDS = 3600.0
"""The most seconds that a verified token stays in the cache."""


VERIFIED_TOKENS = cache_bound(
    "Access tokens of another issuer that were verified",
    "events",
    f"{MAX_CACHED_TOKENS}",
    lost="is verified again",
)


@dataclass(frozen=True)
class _Keys:
    """The keys that were read at the time `read_at` of this process, and the tokens they verified.

    reading    the number of the reading; it stays the same if the next reading returns the same keys
    """

    keys: Sequence[PublicKey]
    read_at: float
    reading: int
    verified: TTLCache[bytes, AccessClaims] = field(
        default_factory=lambda: TTLCache(MAX_CACHED_TOKENS, CACHE_TTL_SECONDS)
    )

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at

    def signed(self, token: AccessToken) -> bool:
        """Whether one of the keys signed a token. False if a key that is not known yet may have signed it.

        Raises `InvalidToken` if the signature is certainly wrong.
        """
        candidate_keys = [key for key in self.keys if token.kid is None or key.kid == token.kid]
        if any(token.is_signed_with(key) for key in candidate_keys):
            return True
        if candidate_keys and token.kid is not None:
            raise InvalidToken("The signature of the access token is wrong.")
        return False


class Issuer:
    """Verifies the access tokens of one authorization server.

    name        its issuer identifier, byte for byte; the address of its metadata is derived from it
    audience    the audience its tokens must have
    clock       returns the seconds since 1970, to check when tokens expire
    """

    def __init__(self, name: str, audience: str, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self.audience = audience
        self._clock = clock
        self._keys: _Keys | None = None
        self._last_read_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> AccessClaims:
        """The claims of a valid access token. Raises `InvalidToken`, or `service_unavailable` if the keys are needed
        and cannot be read now."""
        fingerprint = sha256(token.encode()).digest()
        keys = self._keys
        if keys and keys.age > KEYS_TTL_SECONDS:
            self._start_reading()
        if keys and (cached_claims := keys.verified.get(fingerprint)):
            return require_unexpired(cached_claims, self._clock())
        parts = read_token(token)
        claims = check_claims(parts, self.name, self.audience, self._clock())
        held_keys, keys = keys, keys or await self._newest_keys()
        if keys is None:
            message = "The authorization server cannot be asked for the access token's key right now."
            raise SERVICE_UNAVAILABLE(message, retry_after=max(1, math.ceil(MIN_READ_INTERVAL_SECONDS)))
        if not keys.signed(parts):
            newer = await self._newest_keys() if held_keys else None
            # Keys are not tried twice: forged tokens must not cost twice the work.
            if newer is None or newer.reading == keys.reading or not newer.signed(parts):
                raise InvalidToken("The access token's key is not known.")
            keys = newer
        keys.verified[fingerprint] = claims
        return claims

    def close(self) -> None:
        """Cancel the running reading of keys, if any."""
        if self._reading:
            self._reading.cancel()

    async def _newest_keys(self) -> _Keys | None:
        """The keys after the next reading, or the present ones if that takes too long. None if none were ever read."""
        await asyncio.wait(
            [self._start_reading()], timeout=NEW_KEY_TIMEOUT_SECONDS
        )  # the reading continues after a timeout
        return self._keys

    def _start_reading(self) -> asyncio.Task[None]:
        """The task that reads the keys as soon as they may be read again."""
        if self._reading is None:
            pause = MIN_READ_INTERVAL_SECONDS - (time.monotonic() - self._last_read_at)
            self._reading = asyncio.create_task(self._read_keys(max(0, pause)), name=f"keys of {self.name}")
        return self._reading

    async def _read_keys(self, pause: float) -> None:
        try:
            await asyncio.sleep(pause)
            keys = await read_key_set(self.name)
        except Exception as error:  # another operator's server may fail in any way
            log.warning("the authorization server did not give its keys", issuer=self.name, error=repr(error))
        else:
            now, old = time.monotonic(), self._keys
            if old and old.keys == keys:
                # The keys are the same, so the tokens they verified stay verified.
                self._keys = replace(old, read_at=now)
            else:
                self._keys = _Keys(keys, now, old.reading + 1 if old else 1)
        finally:
            self._last_read_at = time.monotonic()
            self._reading = None


def configured_issuer(settings: Settings) -> Issuer | None:
    """The issuer whose tokens are accepted; None if none is configured."""
    if not settings.oauth_issuer:
        return None
    return Issuer(settings.oauth_issuer, settings.oauth_audience or f"{settings.base_url}/mcp")
