"""The keys with which an authorization server signs access tokens, and a cache of the tokens verified with them.

The keys are read again regularly. Known keys stay in use until then, so no request waits for a server that is slow or
down. During that time, a token of a withdrawn key may still be accepted. A token with an unknown key waits for up to
`NEW_KEY_TIMEOUT_SECONDS` until the keys have been read again, so a new key works at once; after that it is invalid. All
such tokens wait for the same reading, and `MIN_READ_INTERVAL_SECONDS` lie between two readings, so forged tokens do not
cause frequent requests. Only before the first reading, a token is answered with `service_unavailable`: clients discard
a token that is called invalid.

Times are compared with the clock of this machine, which may differ from the server's by `LEEWAY_SECONDS`.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import structlog
from cachetools import TTLCache

from holdfast.events.oauth import jwks
from holdfast.events.oauth.access_token import AccessToken, check_claims, read, require_unexpired
from holdfast.events.oauth.model import AccessClaims
from holdfast.events.settings import Settings
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.security.public_keys import PublicKey
from holdfast.kit.security.signing_keys import InvalidToken

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

log = structlog.get_logger()


VERIFIED_TOKENS = cache_bound(
    "Access tokens of another issuer that were verified",
    "events",
    f"{MAX_CACHED_TOKENS} in a process",
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
        named = [key for key in self.keys if token.kid is None or key.kid == token.kid]
        if any(token.is_signed_with(key) for key in named):
            return True
        if named and token.kid is not None:
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
        if keys and (known := keys.verified.get(fingerprint)):
            return require_unexpired(known, self._clock())
        parts = read(token)
        claims = check_claims(parts, self.name, self.audience, self._clock())
        held, keys = keys, keys or await self._newest_keys()
        if keys is None:
            message = "The authorization server cannot be asked for the access token's key right now."
            raise SERVICE_UNAVAILABLE(message, retry_after=max(1, math.ceil(MIN_READ_INTERVAL_SECONDS)))
        if not keys.signed(parts):
            newer = await self._newest_keys() if held else None
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
            keys = await jwks.read(self.name)
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
