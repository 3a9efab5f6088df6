"""The keys an authorization server signs access tokens with, kept fresh, and what was verified with them.

Keys that are known go on being used while they are read again, so nobody waits for a server that is slow or away. A
token by a key that is not among them waits for a reading, which tells a new key at once. For `COOL_DOWN` seconds after
a reading there is no other, whatever is sent here: until then nobody can tell a new key from a made-up one, and such a
token is told to come back rather than called invalid, because clients throw away what is called invalid.

The clock is this machine's, which its server shares within `LEEWAY` seconds.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import structlog

from holdfast.events.oauth import jwks
from holdfast.events.oauth.access_token import AccessToken, judged, take_apart, unexpired
from holdfast.events.oauth.jwks import Key
from holdfast.events.oauth.model import AccessClaims
from holdfast.events.settings import Settings
from holdfast.kit.problems import SERVICE_UNAVAILABLE
from holdfast.kit.signing import InvalidToken

REMEMBERED = 300.0
"""Seconds after which the keys are read again, when somebody comes."""

COOL_DOWN = 10.0
"""Seconds between two readings at least, whatever anybody sends."""

LAST_GOOD = 3600.0
"""Seconds the keys are good for while no newer ones are known: a server that is away is not missed for so long, and
after such a silence one call may still be answered by a key that was withdrawn."""

CAPACITY = 10_000
"""Verified tokens that are remembered."""

log = structlog.get_logger()


@dataclass(frozen=True)
class _Keys:
    """The keys as they were at `read_at` of this process's clock, and what they verified."""

    keys: Sequence[Key]
    read_at: float
    verified: dict[bytes, AccessClaims] = field(default_factory=dict[bytes, AccessClaims])

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at

    def signed(self, token: AccessToken) -> bool:
        """Whether one of the keys signed a token; False if it may have been one that is not known yet.

        Raises `InvalidToken` when that cannot be.
        """
        named = [key for key in self.keys if token.kid is None or key.kid == token.kid]
        if any(token.is_signed_with(key) for key in named):
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
    clock       tells the seconds since 1970, by which tokens expire
    """

    def __init__(self, name: str, audience: str, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self.audience = audience
        self._clock = clock
        self._keys: _Keys | None = None
        self._asked_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> AccessClaims:
        """What an access token says. Raises `InvalidToken`, and `service_unavailable` where only the server knows."""
        fingerprint = sha256(token.encode()).digest()
        keys = self._believed()
        if keys and (known := keys.verified.get(fingerprint)):
            return unexpired(known, self._clock())
        parts = take_apart(token)
        claims = judged(parts, self.name, self.audience, self._clock())
        if keys is None or not keys.signed(parts):
            tried = keys and keys.keys
            keys = await self._newest()
            # Trying the same keys twice is what whoever sends forged tokens would like.
            if keys.keys is tried or not keys.signed(parts):
                raise InvalidToken("The access token's key is not known.")
        keys.remember(fingerprint, claims)
        return claims

    def close(self) -> None:
        """Give up a reading that is under way."""
        if self._reading:
            self._reading.cancel()

    def _believed(self) -> _Keys | None:
        """The keys, unless they are too old to be good for anything. If they are not new, they are read meanwhile."""
        keys = self._keys
        if keys and keys.age > REMEMBERED:
            self._read()
        return keys if keys and keys.age <= LAST_GOOD else None

    async def _newest(self) -> _Keys:
        """The keys as they are now. Raises `service_unavailable` where the server did not say, or just has."""
        before = self._keys
        if reading := self._read():
            await asyncio.wait([reading])  # which goes on, should this caller go away
        if self._keys is None or self._keys is before:
            wait = COOL_DOWN - (time.monotonic() - self._asked_at)
            message = "The authorization server cannot be asked for the access token's key right now."
            raise SERVICE_UNAVAILABLE(message, retry_after=math.ceil(max(wait, 1)))
        return self._keys

    def _read(self) -> asyncio.Task[None] | None:
        """The reading that is under way, which may begin here; None a short while after another."""
        if self._reading is None and time.monotonic() - self._asked_at >= COOL_DOWN:
            self._reading = asyncio.create_task(self._ask(), name=f"keys of {self.name}")
        return self._reading

    async def _ask(self) -> None:
        try:
            keys = await jwks.read(self.name)
        except Exception as error:  # there is no end to the ways in which somebody else's server can fail
            log.warning("the authorization server did not give its keys", issuer=self.name, error=repr(error))
        else:
            now, old = time.monotonic(), self._keys
            # What the same keys have verified stays verified.
            self._keys = replace(old, read_at=now) if old and old.keys == keys else _Keys(keys, now)
        finally:
            self._asked_at = time.monotonic()
            self._reading = None


def configured(settings: Settings) -> Issuer | None:
    """The issuer whose tokens are accepted, if there is one."""
    if not settings.oauth_issuer:
        return None
    return Issuer(settings.oauth_issuer, settings.oauth_audience or f"{settings.base_url}/mcp")
