"""Keys that sign: a set for each purpose, in a table of its own, sealed with the `secret` of the service's settings.

A key is published before it signs and kept until nothing it signed is valid any more, so that whoever remembers the
published set for a while can verify every token. Age is told by the database's clock, so processes agree on it.
"""

import asyncio
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, LiteralString, NamedTuple

import msgspec
import structlog
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeyParameters, RSAKey
from msgspec import Struct

from holdfast.kit.database import Tx
from holdfast.kit.secrets import Secret, Unreadable

PUBLISHED = 300
"""Seconds others may remember the published keys."""

SIGNS_AFTER = 600
"""Seconds a key is stored before it signs: longer than anybody remembers a set without it."""

Algorithm = Literal["ES256", "RS256"]
Key = ECKey | RSAKey

_SHAPES = {
    # The length of a signature follows from the algorithm: P-256, and RSA with 2048 bits.
    algorithm: re.compile(rf"[A-Za-z0-9_-]{{1,512}}\.[A-Za-z0-9_-]{{1,4096}}\.[A-Za-z0-9_-]{{{length}}}")
    for algorithm, length in (("ES256", 86), ("RS256", 342))
}

log = structlog.get_logger()


class InvalidToken(Exception):
    """A token that is not to be believed; the message says why."""


class _Header(Struct, forbid_unknown_fields=True):
    """The header of a token of ours, to the letter: nothing in it can point to another key."""

    alg: str
    typ: str
    kid: str


class _Stored(NamedTuple):
    """A key, and when it was stored, in seconds of the Unix epoch."""

    key: Key
    since: float


@dataclass(frozen=True)
class Keys:
    """The keys of a set as they were at `now`, the newest first."""

    algorithm: Algorithm
    stored: tuple[_Stored, ...]
    now: float

    def sign(self, typ: str, claims: dict[str, Any], at: float | None = None) -> str:
        """A token of the media type `typ`, signed with the key that signs at a moment: now, if none is given."""
        moment = self.now if at is None else at
        # Where none is old enough, the oldest is the one that others are most likely to know.
        signer = next((each.key for each in self.stored if each.since + SIGNS_AFTER <= moment), self.stored[-1].key)
        return jwt.encode({"alg": self.algorithm, "typ": typ, "kid": signer.kid}, claims, signer, [self.algorithm])

    def opened(self, token: str, typs: Collection[str]) -> tuple[str, bytes]:
        """The media type and the content of a token of one of these types that a key of this set signed.

        Raises `InvalidToken`, and `UnknownKey` when the set has no key of the token's.
        """
        header = self._header(token)
        if header.typ not in typs:
            raise InvalidToken("The token is of another kind.")
        key = next((each.key for each in self.stored if each.key.kid == header.kid), None)
        if key is None:
            raise UnknownKey("The token is signed with an unknown key.")
        try:
            return header.typ, jws.deserialize_compact(token, key, [self.algorithm]).payload or b""
        except (JoseError, ValueError) as error:
            raise InvalidToken("The token is not signed by this service.") from error

    def _header(self, token: str) -> _Header:
        if not _SHAPES[self.algorithm].fullmatch(token):
            raise InvalidToken("This is not a token.")
        try:
            header = msgspec.json.decode(urlsafe_b64decode(token.partition(".")[0] + "=="), type=_Header)
        except ValueError as error:
            raise InvalidToken("The token is not signed by this service.") from error
        if header.alg != self.algorithm:
            raise InvalidToken("The token is not signed by this service.")
        return header

    def published(self) -> dict[str, Any]:
        """The public keys, as RFC 7517 has them; `PUBLISHED` is how long others may remember them."""
        return {"keys": [each.key.as_dict(private=False) for each in self.stored]}


class UnknownKey(InvalidToken):
    """A token signed with a key that is not in the set; perhaps not yet."""


@dataclass(frozen=True)
class KeySet:
    """The keys of one purpose. What one set signed, no other verifies.

    table       where they are kept: `kid`, `sealed`, `inserted_at`
    longest     seconds that what they sign may be valid. A key goes half a day after the last of it has expired
    """

    table: LiteralString
    algorithm: Algorithm
    longest: int

    async def read(self, tx: Tx[Any]) -> Keys:
        """The keys; where there are none, a first one, which processes that come at once agree on."""
        keys = await self.readable(tx)
        if not keys.stored:
            await self._make_first(tx)
            keys = await self.readable(tx)
        return keys

    async def rotate(self, tx: Tx[Any]) -> int:
        """Add a key, which signs once it is known everywhere, and remove those that have nothing left to verify.

        Returns how many keys that were. Meant for a timetable: a key that may have leaked is deleted instead, and with
        it goes, as soon as it is forgotten, everything it signed.
        """
        await self._add(tx)
        removed = await tx.tuples(
            f"""
            delete from {self.table} as old
             where exists (select from {self.table} as successor
                            where successor.inserted_at > old.inserted_at
                              and successor.inserted_at < now() - %(kept)s * interval '1 second')
            returning kid
            """,
            {"kept": self.longest + 43_200},
        )
        return 1 + len(removed)

    async def readable(self, tx: Tx[Any]) -> Keys:
        """The keys this service can unseal, perhaps none."""
        rows = await tx.tuples(
            f"""
            select kid, sealed, extract(epoch from inserted_at)::float8, extract(epoch from clock_timestamp())::float8
              from (select 1) as always left join {self.table} on true order by inserted_at desc, kid
            """
        )
        secret: Secret = tx.settings.secret
        stored: list[_Stored] = []
        for kid, sealed, since, _ in rows:
            if kid is None:
                continue
            try:
                stored.append(_Stored(_unsealed(secret, sealed, self.algorithm), since))
            except Unreadable:
                log.warning("a signing key was sealed under another secret key", kid=kid)
        return Keys(self.algorithm, tuple(stored), rows[0][3])

    async def _make_first(self, tx: Tx[Any]) -> None:
        """Make a key if there still is none; everybody else who wants to waits until this transaction ends."""
        await tx.run(f"lock table {self.table} in share row exclusive mode")
        if not (await self.readable(tx)).stored:
            await self._add(tx)

    async def _add(self, tx: Tx[Any]) -> None:
        key = await asyncio.to_thread(_generated, self.algorithm)
        jwk = msgspec.json.encode(key.as_dict(private=True)).decode()
        await tx.run(
            f"insert into {self.table} (kid, sealed) values (%(kid)s, %(sealed)s)",
            {"kid": key.kid, "sealed": tx.settings.secret.seal(jwk)},
        )


def _generated(algorithm: Algorithm) -> Key:
    options: KeyParameters = {"use": "sig", "alg": algorithm}
    if algorithm == "ES256":
        return ECKey.generate_key("P-256", options, auto_kid=True)
    return RSAKey.generate_key(2048, options, auto_kid=True)


@lru_cache(maxsize=64)
def _unsealed(secret: Secret, sealed: bytes, algorithm: Algorithm) -> Key:
    """A stored key; reading it takes longer than signing with it. Raises `Unreadable`."""
    jwk: dict[str, Any] = msgspec.json.decode(secret.unseal(sealed), type=dict[str, str])
    return ECKey.import_key(jwk) if algorithm == "ES256" else RSAKey.import_key(jwk)
