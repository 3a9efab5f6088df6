"""Signed tokens: JWTs (RFC 7519) of this service, the keys that sign them, and the public keys of other programs.

Each purpose has a set of keys, in its own table, sealed with the `secret` of the service's resources. A key is
published before it signs, and stored until all its tokens have expired. So a client that caches the published set can
verify every token. The age of a key is measured by the database's clock, so that processes agree on it.
"""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, LiteralString, NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from joserfc import jws, jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, KeyParameters, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.security.service_secret import HasSecret, Secret, UnsealError

PUBLISHED_TTL_SECONDS = 300
"""Seconds for which clients may cache the published keys."""

SIGNING_DELAY_SECONDS = 600
"""Seconds that a key is stored before it signs: longer than clients may cache a set without it."""

Algorithm = Literal["ES256", "RS256"]
Key = ECKey | RSAKey

log = structlog.get_logger()


class InvalidToken(Exception):
    """The token is not valid. The message says why."""


class UnknownKey(InvalidToken):
    """The token was signed with a key that is not, or not yet, in the set."""


class ForeignToken(InvalidToken):
    """The token was signed here, for another issuer or another audience."""


class TokenClaims(Protocol):
    """The claims by which every token is checked: of RFC 7519, times in seconds of the Unix epoch."""

    @property
    def iss(self) -> str: ...
    @property
    def aud(self) -> str | list[str]: ...
    @property
    def iat(self) -> int: ...
    @property
    def exp(self) -> int: ...


C = TypeVar("C", bound=TokenClaims)


@dataclass(frozen=True)
class TokenType(Generic[C]):
    """A type of token. A token of one type never passes for one of another.

    typ         the media type in its header
    claims      the type of its claims, a `Struct`
    audience    returns the audience that a token with these claims must name
    lifetime    seconds for which a token is valid
    leeway      seconds by which clocks may differ
    """

    typ: str
    claims: type[C]
    audience: Callable[[C], str]
    lifetime: int
    leeway: int = 0

    def require_current(self, claims: C, now: float) -> None:
        """Check that a token has begun and not ended at a time. Raises `InvalidToken`."""
        if claims.exp + self.leeway <= now:
            raise InvalidToken("The token has expired.")
        if claims.iat - self.leeway > now:
            raise InvalidToken("The token is from the future.")


class _Header(Struct, forbid_unknown_fields=True):
    """The header of a token of this service. Further members are refused, so a header cannot bring its own key."""

    alg: str
    typ: str
    kid: str


class _SealedKeyRow(Struct):
    """A key as it is stored, and the time of the database, which is read even if there is no key.

    kid    None: there is no key, and the row has only the time
    """

    kid: str | None
    sealed: bytes
    since: float
    now: float


class _StoredKey(NamedTuple):
    """A key, and the time at which it was stored, in seconds of the Unix epoch."""

    key: Key
    since: float


@dataclass(frozen=True)
class SigningKeySet:
    """The keys of a set at the time `now`, newest first."""

    algorithm: Algorithm
    stored_keys: tuple[_StoredKey, ...]
    now: float

    def sign(self, type: TokenType[C], claims: C, at: float | None = None) -> str:
        """A token, signed with the key in use at the time `at` (default: `now`)."""
        moment = self.now if at is None else at
        # If no key is old enough, clients are most likely to have the oldest one.
        signer = next(
            (stored_key.key for stored_key in self.stored_keys if stored_key.since + SIGNING_DELAY_SECONDS <= moment),
            self.stored_keys[-1].key,
        )
        header = {"alg": self.algorithm, "typ": type.typ, "kid": signer.kid}
        return jwt.encode(header, msgspec.to_builtins(claims), signer, [self.algorithm])

    def verify(
        self, token: str, types: Sequence[TokenType[C]], is_issuer: Callable[[str], bool]
    ) -> tuple[TokenType[C], C]:
        """The type and the claims of a token of one of these types, whatever the time.

        The caller checks the time with `TokenType.require_current`, each time that the token is used.

        Raises `InvalidToken`; `UnknownKey` if its key is not in the set; `ForeignToken`.
        """
        type, content = self._verify_signature(token, types)
        try:
            claims = msgspec.json.decode(content, type=type.claims)
        except ValueError as error:  # msgspec's errors are ValueErrors
            raise InvalidToken("The token is not signed by this service.") from error
        audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
        if not is_issuer(claims.iss) or type.audience(claims) not in audiences:
            raise ForeignToken("The token is for another audience.")
        return type, claims

    def _verify_signature(self, token: str, types: Sequence[TokenType[C]]) -> tuple[TokenType[C], bytes]:
        try:
            parts = jws.extract_compact(token.encode())
            header = msgspec.convert(parts.headers(), _Header)
        except (JoseError, ValueError) as error:
            raise InvalidToken("This is not a token of this service.") from error
        type = next((type for type in types if type.typ == header.typ), None)
        if type is None:
            raise InvalidToken("The token is of another kind.")
        key = next((stored_key.key for stored_key in self.stored_keys if stored_key.key.kid == header.kid), None)
        if key is None:
            raise UnknownKey("The token is signed with an unknown key.")
        try:
            if jws.validate_compact(parts, key, [self.algorithm]):
                return type, parts.payload
        except (JoseError, ValueError) as error:
            raise InvalidToken("The token is not signed by this service.") from error
        raise InvalidToken("The token is not signed by this service.")

    def jwks(self) -> dict[str, Any]:
        """The public keys as a set of RFC 7517. Clients may cache it for `PUBLISHED_TTL_SECONDS` seconds."""
        return {"keys": [stored_key.key.as_dict(private=False) for stored_key in self.stored_keys]}


@dataclass(frozen=True)
class SigningKeyTable:
    """The keys of one purpose. A token that one set signed is not valid for another set.

    table                their table: `kid`, `sealed`, `inserted_at`
    max_token_seconds    the maximum lifetime of a token. A key is deleted half a day after its last token has expired
    """

    table: LiteralString
    algorithm: Algorithm
    max_token_seconds: int

    async def read_or_create(self, tx: Tx[HasSecret]) -> SigningKeySet:
        """The keys. Creates the first key if there is none; concurrent processes get the same key."""
        keys = await self.find_usable(tx)
        if not keys.stored_keys:
            await self._make_first(tx)
            keys = await self.find_usable(tx)
        return keys

    async def rotate(self, tx: Tx[HasSecret]) -> int:
        """Add a key, which signs after `SIGNING_DELAY_SECONDS` seconds, and delete those whose tokens have all expired.

        Returns the number of added and deleted keys. Call it on a timetable. A key that may have leaked must be deleted
        by hand; its tokens become invalid as soon as clients no longer have it in their caches.
        """
        await self._add(tx)
        removed_rows = await tx.tuples(
            f"""
            delete from {self.table} as old
             where exists (select from {self.table} as successor
                            where successor.inserted_at > old.inserted_at
                              and successor.inserted_at < now() - %(retention_seconds)s * interval '1 second')
            returning kid
            """,
            {"retention_seconds": self.max_token_seconds + 43_200},
        )
        return 1 + len(removed_rows)

    async def find_usable(self, reader: Reader[HasSecret]) -> SigningKeySet:
        """The keys that this service can unseal; there may be none."""
        rows = await reader.rows(
            _SealedKeyRow,
            f"""
            select kid, sealed, extract(epoch from inserted_at)::float8 as since,
                   extract(epoch from clock_timestamp())::float8 as now
              from (select 1) as always left join {self.table} on true order by inserted_at desc, kid
            """,
        )
        secret = reader.resources.secret
        stored_keys: list[_StoredKey] = []
        for row in rows:
            if row.kid is None:
                continue
            try:
                stored_keys.append(_StoredKey(_unseal_key(secret, row.sealed, self.algorithm), row.since))
            except UnsealError:
                log.warning("a signing key was sealed under another secret key", kid=row.kid)
        return SigningKeySet(self.algorithm, tuple(stored_keys), rows[0].now)

    async def _make_first(self, tx: Tx[HasSecret]) -> None:
        """Create a key if there is none yet. Concurrent transactions wait until this one ends."""
        await tx.run(f"lock table {self.table} in share row exclusive mode")
        if not (await self.find_usable(tx)).stored_keys:
            await self._add(tx)

    async def _add(self, tx: Tx[HasSecret]) -> None:
        key = await asyncio.to_thread(_generate_key, self.algorithm)
        jwk = msgspec.json.encode(key.as_dict(private=True)).decode()
        await tx.run(
            f"insert into {self.table} (kid, sealed) values (%(kid)s, %(sealed)s)",
            {"kid": key.kid, "sealed": tx.resources.secret.seal(jwk)},
        )


def _generate_key(algorithm: Algorithm) -> Key:
    options: KeyParameters = {"use": "sig", "alg": algorithm}
    if algorithm == "ES256":
        return ECKey.generate_key("P-256", options, auto_kid=True)
    return RSAKey.generate_key(2048, options, auto_kid=True)


@lru_cache(maxsize=64)
def _unseal_key(secret: Secret, sealed: bytes, algorithm: Algorithm) -> Key:
    """A stored key. It is cached because reading it takes longer than signing with it. Raises `UnsealError`."""
    jwk: dict[str, Any] = msgspec.json.decode(secret.unseal(sealed), type=dict[str, str])
    return ECKey.import_key(jwk) if algorithm == "ES256" else RSAKey.import_key(jwk)


ALGORITHMS = frozenset("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split())
"""The accepted algorithms: none with a shared secret, as which a public key could be misused."""

REGISTRY = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
REGISTRY.max_header_length, REGISTRY.max_payload_length, REGISTRY.max_signature_length = 2048, 16384, 1400

PublicKey = RSAKey | ECKey | OKPKey

_KINDS: dict[Any, type[PublicKey]] = {kind.key_type: kind for kind in (RSAKey, ECKey, OKPKey)}


def usable_keys(jwks: Sequence[dict[str, Any]]) -> Iterator[PublicKey]:
    """The keys of a set that can verify signatures here. Keys of types that are not supported are left out."""
    for jwk in jwks:
        if jwk.get("use", "sig") != "sig":
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SecurityWarning)  # such as an RSA key of fewer than 2,048 bits
                key = _KINDS[jwk.get("kty")].import_key(jwk)
        except (JoseError, SecurityWarning, ValueError, TypeError, KeyError):
            continue
        yield key


def has_signed(key: PublicKey, parts: jws.CompactSignature) -> bool:
    """Whether a key signed a token, used as its declared algorithm and use allow."""
    try:
        with warnings.catch_warnings():
            # The library warns about the name EdDSA, which RFC 9864 replaces, but servers still use it.
            warnings.simplefilter("ignore", SecurityWarning)
            return jws.validate_compact(parts, key, registry=REGISTRY)
    except (JoseError, ValueError):
        return False
