"""Signing keys: a set for each purpose, in a table of its own, sealed with the `secret` of the service's resources.

A key is published before it signs, and kept until every token it signed has expired. So a client that caches the
published set can verify every token. The database's clock gives the age of a key, so that processes agree on it.
"""

import asyncio
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

from holdfast.kit.database import Reader, Tx
from holdfast.kit.secrets import HasSecret, Secret, Unreadable

PUBLISHED = 300
"""Seconds for which clients may cache the published keys."""

SIGNS_AFTER = 600
"""Seconds a key is stored before it signs: longer than clients may cache a set without it."""

Algorithm = Literal["ES256", "RS256"]
Key = ECKey | RSAKey

log = structlog.get_logger()


class InvalidToken(Exception):
    """The token is not valid; the message says why."""


class _Header(Struct, forbid_unknown_fields=True):
    """The header of a token of this service. Further members are refused, so a header cannot bring its own key."""

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
        """A token of the media type `typ`, signed with the key that is in use at the time `at`, or now."""
        moment = self.now if at is None else at
        # If no key is old enough, the oldest is the one that clients are most likely to have.
        signer = next((each.key for each in self.stored if each.since + SIGNS_AFTER <= moment), self.stored[-1].key)
        return jwt.encode({"alg": self.algorithm, "typ": typ, "kid": signer.kid}, claims, signer, [self.algorithm])

    def opened(self, token: str, typs: Collection[str]) -> tuple[str, bytes]:
        """The media type and the content of a token that has one of these types and was signed with a key of this set.

        Raises `InvalidToken`, and `UnknownKey` when the token's key is not in the set.
        """
        try:
            parts = jws.extract_compact(token.encode())
            header = msgspec.convert(parts.headers(), _Header)
        except (JoseError, ValueError) as error:  # msgspec's errors are ValueErrors
            raise InvalidToken("This is not a token of this service.") from error
        if header.typ not in typs:
            raise InvalidToken("The token is of another kind.")
        key = next((each.key for each in self.stored if each.key.kid == header.kid), None)
        if key is None:
            raise UnknownKey("The token is signed with an unknown key.")
        try:
            if jws.validate_compact(parts, key, [self.algorithm]):
                return header.typ, parts.payload
        except (JoseError, ValueError) as error:
            raise InvalidToken("The token is not signed by this service.") from error
        raise InvalidToken("The token is not signed by this service.")

    def published(self) -> dict[str, Any]:
        """The public keys as a set of RFC 7517. Clients may cache it for `PUBLISHED` seconds."""
        return {"keys": [each.key.as_dict(private=False) for each in self.stored]}


class UnknownKey(InvalidToken):
    """The token was signed with a key that is not in the set, or not yet."""


@dataclass(frozen=True)
class KeySet:
    """The keys of one purpose. A token that one set signed is not valid for another set.

    table       their table: `kid`, `sealed`, `inserted_at`
    longest     the most seconds a token is valid. A key is deleted half a day after its last token has expired
    """

    table: LiteralString
    algorithm: Algorithm
    longest: int

    async def read(self, tx: Tx[HasSecret]) -> Keys:
        """The keys. If there are none, create the first one; processes that do so at the same time get the same key."""
        keys = await self.readable(tx)
        if not keys.stored:
            await self._make_first(tx)
            keys = await self.readable(tx)
        return keys

    async def rotate(self, tx: Tx[HasSecret]) -> int:
        """Add a key, which signs after `SIGNS_AFTER` seconds, and delete those whose tokens have all expired.

        Returns how many keys were added and deleted. Call it on a timetable. A key that may have leaked must be deleted
        by hand; its tokens become invalid as soon as clients no longer have it in their caches.
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

    async def readable(self, reader: Reader[HasSecret]) -> Keys:
        """The keys that this service can unseal; possibly none."""
        rows = await reader.tuples(
            f"""
            select kid, sealed, extract(epoch from inserted_at)::float8, extract(epoch from clock_timestamp())::float8
              from (select 1) as always left join {self.table} on true order by inserted_at desc, kid
            """
        )
        secret = reader.resources.secret
        stored: list[_Stored] = []
        for kid, sealed, since, _ in rows:
            if kid is None:
                continue
            try:
                stored.append(_Stored(_unsealed(secret, sealed, self.algorithm), since))
            except Unreadable:
                log.warning("a signing key was sealed under another secret key", kid=kid)
        return Keys(self.algorithm, tuple(stored), rows[0][3])

    async def _make_first(self, tx: Tx[HasSecret]) -> None:
        """Create a key if there still is none; other transactions that do so wait until this one ends."""
        await tx.run(f"lock table {self.table} in share row exclusive mode")
        if not (await self.readable(tx)).stored:
            await self._add(tx)

    async def _add(self, tx: Tx[HasSecret]) -> None:
        key = await asyncio.to_thread(_generated, self.algorithm)
        jwk = msgspec.json.encode(key.as_dict(private=True)).decode()
        await tx.run(
            f"insert into {self.table} (kid, sealed) values (%(kid)s, %(sealed)s)",
            {"kid": key.kid, "sealed": tx.resources.secret.seal(jwk)},
        )


def _generated(algorithm: Algorithm) -> Key:
    options: KeyParameters = {"use": "sig", "alg": algorithm}
    if algorithm == "ES256":
        return ECKey.generate_key("P-256", options, auto_kid=True)
    return RSAKey.generate_key(2048, options, auto_kid=True)


@lru_cache(maxsize=64)
def _unsealed(secret: Secret, sealed: bytes, algorithm: Algorithm) -> Key:
    """A stored key, cached because reading it takes longer than signing with it. Raises `Unreadable`."""
    jwk: dict[str, Any] = msgspec.json.decode(secret.unseal(sealed), type=dict[str, str])
    return ECKey.import_key(jwk) if algorithm == "ES256" else RSAKey.import_key(jwk)
