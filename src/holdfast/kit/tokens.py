"""Signed tokens: ES256 JWTs, and the keys that sign them.

The keys live in the table `signing_keys` of a service's database, sealed with the `secret` of its settings. A key is
published before it signs and kept until nothing it signed is valid any more, so that whoever remembers the published
set for a while can verify every token. The time of tokens is the database's, so processes agree on what has expired.
"""

import asyncio
import re
import secrets
import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import structlog
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from msgspec import Struct

from holdfast.kit.database import Database, Tx
from holdfast.kit.secrets import Secret, Unreadable

PUBLISHED = 300
"""Seconds others may remember the published keys."""

REMEMBERED = 60
"""Seconds a process remembers the stored keys, and what it verified with them."""

SIGNS_AFTER = 600
"""Seconds a key is stored before it signs: longer than anybody remembers a set without it."""

LONGEST = 12 * 3600
"""Seconds a token may be valid. A key goes a day after its successor came: by then all it signed has expired."""

LEEWAY = 10
"""Seconds by which clocks may differ."""

CAPACITY = 10_000
"""Verified tokens a process remembers."""

_ALGORITHMS = ["ES256"]
_SHAPE = re.compile(r"[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{86}")

log = structlog.get_logger()


class InvalidToken(Exception):
    """A token that is not to be believed; the message says why."""


class Claims(Struct, frozen=True):
    """What every token says; each kind adds its own."""

    iss: str
    aud: str
    sub: str
    iat: int
    exp: int
    jti: str


C = TypeVar("C", bound=Claims)


@dataclass(frozen=True)
class Kind(Generic[C]):
    """A kind of token.

    typ         the media type in its header, which keeps one kind from passing for another
    audience    who is to believe it
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


class _Header(Struct, forbid_unknown_fields=True):
    """The header of a token of ours, to the letter: nothing in it can point to another key."""

    alg: Literal["ES256"]
    typ: str
    kid: str


@dataclass(frozen=True)
class _Keys:
    """The stored keys as they were at `read_at` of this process's clock, which was `now` by the database's."""

    by_id: Mapping[str, ECKey]
    signer: ECKey
    now: float
    read_at: float
    verified: dict[bytes, tuple[Kind[Any], Any]] = field(default_factory=dict[bytes, tuple[Kind[Any], Any]])

    @property
    def time(self) -> float:
        return self.now + self.age

    @property
    def age(self) -> float:
        return time.monotonic() - self.read_at


class Tokens:
    """Signs and verifies the tokens of one service.

    issuer    the service's address, without a slash at the end
    """

    def __init__(self, database: Database[Any], issuer: str) -> None:
        self._database = database
        self._issuer = issuer
        self._keys: _Keys | None = None
        self._reading = asyncio.Lock()

    async def sign(self, kind: Kind[Any], subject: str, **claims: str) -> Signed:
        """A fresh token about a subject."""
        assert kind.lifetime <= LONGEST
        keys = await self._read(REMEMBERED)
        issued_at = int(keys.time)
        expires_at = issued_at + kind.lifetime
        header = {"alg": "ES256", "typ": kind.typ, "kid": keys.signer.kid}
        said = {
            "iss": self._issuer,
            "aud": kind.audience,
            "sub": subject,
            "iat": issued_at,
            "exp": expires_at,
            "jti": secrets.token_urlsafe(16),
            **claims,
        }
        return Signed(jwt.encode(header, said, keys.signer, _ALGORITHMS), datetime.fromtimestamp(expires_at, UTC))

    async def verify(self, token: str, *kinds: Kind[C]) -> C:
        """The claims of a token of one of these kinds. Raises `InvalidToken`."""
        if not _SHAPE.fullmatch(token):
            raise InvalidToken("This is not a token.")
        keys = await self._read(REMEMBERED)
        fingerprint = sha256(token.encode()).digest()
        kind, claims = keys.verified.get(fingerprint, (None, None))
        if claims is None or kind not in kinds:
            kind, claims = await self._verified(token, kinds)
            if len(keys.verified) >= CAPACITY:
                keys.verified.clear()
            keys.verified[fingerprint] = kind, claims
        if claims.exp + LEEWAY <= keys.time:
            raise InvalidToken("The token has expired.")
        if claims.iat - LEEWAY > keys.time:
            raise InvalidToken("The token is from the future.")
        return claims

    async def _verified(self, token: str, kinds: Sequence[Kind[C]]) -> tuple[Kind[C], C]:
        header = _header(token)
        kind = next((each for each in kinds if each.typ == header.typ), None)
        if kind is None:
            raise InvalidToken("The token is of another kind.")
        try:
            content = jws.deserialize_compact(token, await self._key(header.kid), _ALGORITHMS).payload or b""
            claims = msgspec.json.decode(content, type=kind.claims)
        except (JoseError, ValueError) as error:  # msgspec's errors are ValueErrors
            raise InvalidToken("The token is not signed by this service.") from error
        if (claims.iss, claims.aud) != (self._issuer, kind.audience):
            raise InvalidToken("The token is for somebody else.")
        return kind, claims

    async def _key(self, kid: str) -> ECKey:
        # One that was made a moment ago, because there was none, is read when it is met.
        key = (await self._read(REMEMBERED)).by_id.get(kid) or (await self._read(1)).by_id.get(kid)
        if key is None:
            raise InvalidToken("The token is signed with an unknown key.")
        return key

    async def jwks(self) -> dict[str, Any]:
        """The public keys, as RFC 7517 has them; `PUBLISHED` is how long others may remember them."""
        keys = await self._read(REMEMBERED)
        return {"keys": [key.as_dict(private=False) for key in keys.by_id.values()]}

    async def _read(self, patience: float) -> _Keys:
        """The keys as they were at most `patience` seconds ago."""
        if keys := self._fresh(patience):
            return keys
        async with self._reading:
            if keys := self._fresh(patience):
                return keys
            self._keys = await self._stored()
            return self._keys

    def _fresh(self, patience: float) -> _Keys | None:
        return self._keys if self._keys and self._keys.age <= patience else None

    async def _stored(self) -> _Keys:
        rows = await self._database.read(_readable) or await self._database.transact(_first)
        keys = [row.key for row in rows]
        # Where none is old enough, the oldest is the one that others are most likely to know.
        signer = next((row.key for row in rows if row.age >= SIGNS_AFTER), keys[-1])
        return _Keys({key.kid or "": key for key in keys}, signer, rows[0].now, time.monotonic())


def _header(token: str) -> _Header:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token.partition(".")[0] + "=="), type=_Header)
    except ValueError as error:
        raise InvalidToken("The token is not signed by this service.") from error


async def rotate(tx: Tx[Any]) -> int:
    """Add a key, which signs once it is known everywhere, and remove those that have nothing left to verify.

    Returns how many keys that were. Meant for a timetable: a key that may have leaked is deleted instead, and with it
    goes, within `REMEMBERED` seconds, everything it signed.
    """
    await _add(tx)
    removed = await tx.tuples(
        """
        delete from signing_keys as old
         where exists (select from signing_keys as successor
                        where successor.inserted_at > old.inserted_at
                          and successor.inserted_at < now() - interval '1 day')
        returning kid
        """
    )
    return 1 + len(removed)


class _Stored(NamedTuple):
    key: ECKey
    age: float
    now: float


async def _readable(tx: Tx[Any]) -> list[_Stored]:
    """The keys this service can unseal, the newest first."""
    rows = await tx.tuples(
        """
        select kid, sealed, extract(epoch from now() - inserted_at)::float8, extract(epoch from now())::float8
          from signing_keys order by inserted_at desc, kid
        """
    )
    secret: Secret = tx.settings.secret
    stored: list[_Stored] = []
    for kid, sealed, age, now in rows:
        try:
            jwk = msgspec.json.decode(secret.unseal(sealed), type=dict[str, str])
        except Unreadable:
            log.warning("a signing key was sealed under another secret key", kid=kid)
        else:
            stored.append(_Stored(ECKey.import_key(dict(jwk)), age, now))
    return stored


async def _first(tx: Tx[Any]) -> list[_Stored]:
    """The keys; where there are none, a first one, which processes that come at once agree on."""
    await tx.run("lock table signing_keys in share row exclusive mode")
    if not await _readable(tx):
        await _add(tx)
    return await _readable(tx)


async def _add(tx: Tx[Any]) -> None:
    key = ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True)
    jwk = msgspec.json.encode(key.as_dict(private=True)).decode()
    await tx.run(
        "insert into signing_keys (kid, sealed) values (%(kid)s, %(sealed)s)",
        {"kid": key.kid, "sealed": tx.settings.secret.seal(jwk)},
    )
