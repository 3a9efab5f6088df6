"""The keys with which an authorization server signs access tokens, and a cache of the tokens verified with them.

The keys are read again regularly. Known keys stay in use meanwhile, so no request waits for a server that is slow or
down. A token with an unknown key waits until the keys have been read again, so a new key works at once. After a reading
the keys are not read again for `COOL_DOWN` seconds, whatever tokens arrive. In this time an unknown key may be new or
forged, so its token is answered with `service_unavailable` and not with `invalid_api_key`: clients discard a token that
is called invalid.

Times are compared with the clock of this machine, which may differ from the server's by `LEEWAY` seconds.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import structlog
from cachetools import LRUCache

from holdfast.events.oauth import jwks
from holdfast.events.oauth.access_token import AccessToken, checked, read, unexpired
from holdfast.events.oauth.jwks import Key
from holdfast.events.oauth.model import AccessClaims
from holdfast.events.settings import Settings
from holdfast.kit.problems import SERVICE_UNAVAILABLE
from holdfast.kit.signing import InvalidToken

REMEMBERED = 300.0
"""Seconds after which the keys are read again, at the next request."""

COOL_DOWN = 10.0
"""The least number of seconds between two readings of the keys, whatever tokens arrive."""

LAST_GOOD = 3600.0
"""Seconds for which keys are used if they cannot be read again: for so long the server may be down without effect. A
token of a key that was withdrawn meanwhile may still be accepted."""

CAPACITY = 10_000
"""The most verified tokens in the cache."""

log = structlog.get_logger()


@dataclass(frozen=True)
class _Keys:
    """The keys as they were at the time `read_at` of this process, and the tokens they verified.

    reading    the number of the reading that found them; it stays the same if the next reading finds the same keys
    """

    keys: Sequence[Key]
    read_at: float
    reading: int
    verified: LRUCache[bytes, AccessClaims] = field(default_factory=lambda: LRUCache(CAPACITY))

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at

    def signed(self, token: AccessToken) -> bool:
        """Whether one of the keys signed a token. False if a key that is not known yet may have signed it.

        Raises `InvalidToken` if the signature is wrong for certain.
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
        self._asked_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> AccessClaims:
        """The claims of a valid access token. Raises `InvalidToken`, or `service_unavailable` if the keys are needed
        and cannot be read now."""
        fingerprint = sha256(token.encode()).digest()
        keys = self._usable()
        if keys and (known := keys.verified.get(fingerprint)):
            return unexpired(known, self._clock())
        parts = read(token)
        claims = checked(parts, self.name, self.audience, self._clock())
        if keys is None or not keys.signed(parts):
            tried = keys.reading if keys else None
            keys = await self._newest()
            # Keys that were tried already are not tried again: forged tokens must not cost twice the work.
            if keys.reading == tried or not keys.signed(parts):
                raise InvalidToken("The access token's key is not known.")
        keys.verified[fingerprint] = claims
        return claims

    def close(self) -> None:
        """Cancel the reading of keys that is running, if any."""
        if self._reading:
            self._reading.cancel()

    def _usable(self) -> _Keys | None:
        """The keys, or None if they are too old to be used. Starts to read them again if they are not fresh."""
        keys = self._keys
        if keys and keys.age > REMEMBERED:
            self._read()
        return keys if keys and keys.age <= LAST_GOOD else None

    async def _newest(self) -> _Keys:
        """Read the keys now. Raises `service_unavailable` if that fails, or if they were read just before."""
        before = self._keys.read_at if self._keys else None
        if reading := self._read():
            await asyncio.wait([reading])  # the reading continues if this caller is cancelled
        if self._keys is None or self._keys.read_at == before:
            wait = COOL_DOWN - (time.monotonic() - self._asked_at)
            message = "The authorization server cannot be asked for the access token's key right now."
            raise SERVICE_UNAVAILABLE(message, retry_after=math.ceil(max(wait, 1)))
        return self._keys

    def _read(self) -> asyncio.Task[None] | None:
        """The running task that reads the keys; starts one if necessary. None during `COOL_DOWN`."""
        if self._reading is None and time.monotonic() - self._asked_at >= COOL_DOWN:
            self._reading = asyncio.create_task(self._ask(), name=f"keys of {self.name}")
        return self._reading

    async def _ask(self) -> None:
        try:
            keys = await jwks.read(self.name)
        except Exception as error:  # a server of others may fail in any way
            log.warning("the authorization server did not give its keys", issuer=self.name, error=repr(error))
        else:
            now, old = time.monotonic(), self._keys
            if old and old.keys == keys:
                # The keys are the same, so the tokens they verified stay verified.
                self._keys = replace(old, read_at=now)
            else:
                self._keys = _Keys(keys, now, old.reading + 1 if old else 1)
        finally:
            self._asked_at = time.monotonic()
            self._reading = None


def configured(settings: Settings) -> Issuer | None:
    """The issuer whose tokens are accepted, if there is one."""
    if not settings.oauth_issuer:
        return None
    return Issuer(settings.oauth_issuer, settings.oauth_audience or f"{settings.base_url}/mcp")
