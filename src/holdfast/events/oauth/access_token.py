"""An access token, taken apart and judged: a JWT (RFC 9068) that an authorization server signed, for this service."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from joserfc.errors import JoseError
from joserfc.jwa import JWS_ALGORITHMS, JWSAlgModel
from joserfc.util import urlsafe_b64decode
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.events.oauth.jwks import Key
from holdfast.events.oauth.model import SCOPES, AccessClaims, Subject
from holdfast.events.users.model import Email, canonical
from holdfast.kit.signing import InvalidToken

LEEWAY = 30
"""Seconds by which clocks may differ."""

ALGORITHMS: Mapping[str, JWSAlgModel] = {
    each.name: each
    for each in JWS_ALGORITHMS
    if each.name in "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split()
}
"""What a token may be signed with: nothing that a public key could be made to do."""

TYPES = frozenset({None, "at+jwt", "application/at+jwt", "jwt"})
"""The media types an access token may have in its header, in lower case; None is none."""

_SHAPE = re.compile(r"[A-Za-z0-9_-]{1,2048}\.[A-Za-z0-9_-]{1,16384}\.[A-Za-z0-9_-]{1,1400}")

_WRONG = re.compile(r"at `\$\.(\w+)|required field `(\w+)`")
"""How a decoder's message names the claim that is wrong, or missing."""


class AccessToken(NamedTuple):
    """A token taken apart, of which nothing is believed yet.

    kid       the key it says it is signed with
    signed    what the signature is of
    claims    JSON
    """

    algorithm: JWSAlgModel
    kid: str | None
    signed: bytes
    signature: bytes
    claims: bytes

    def is_signed_with(self, key: Key) -> bool:
        """Whether a key, used as it is meant to be used, signed it."""
        try:
            self.algorithm.check_key(key)
            return self.algorithm.verify(self.signed, self.signature, key)
        except (JoseError, ValueError):
            return False


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


def take_apart(token: str) -> AccessToken:
    """Raises `InvalidToken` for what cannot be an access token, whoever signed it."""
    if not _SHAPE.fullmatch(token):
        raise InvalidToken("This is neither an API key nor an access token.")
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
    return AccessToken(ALGORITHMS[header.alg], header.kid, signed, signature, claims)


def judged(token: AccessToken, issuer: str, audience: str, now: float) -> AccessClaims:
    """What a token says, if its signature is good.

    Raises `InvalidToken` for one that is worth no look at its signature: of another issuer, for another audience, or
    of another time than `now`, in seconds since 1970.
    """
    claims = _read(token.claims)
    if claims.iss != issuer:
        raise InvalidToken(f"The access token is of another issuer than {issuer}.")
    if audience not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        raise InvalidToken(f"The access token is not for {audience}.")
    if max(claims.nbf or 0, claims.iat or 0) - LEEWAY > now:
        raise InvalidToken("The access token is from the future.")
    scopes = {*_words(claims.scope), *_words(claims.scp)} & SCOPES.keys()
    return unexpired(AccessClaims(claims.sub, frozenset(scopes), _verified_email(claims), claims.exp), now)


def unexpired(claims: AccessClaims, now: float) -> AccessClaims:
    """The same claims. Raises `InvalidToken` for those of a token that has expired."""
    if claims.expires_at + LEEWAY <= now:
        raise InvalidToken("The access token has expired.")
    return claims


def _read(content: bytes) -> _Claims:
    try:
        return msgspec.json.decode(content, type=_Claims)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        found = _WRONG.search(str(error))
        if found is None:
            raise InvalidToken("The access token's claims are malformed.") from error
        wrong, missing = found.groups()
        said = f"lacks the claim {missing}" if missing else f"has a malformed claim {wrong}"
        raise InvalidToken(f"The access token {said}.") from error


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
