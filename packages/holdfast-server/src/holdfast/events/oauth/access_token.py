"""Reads and checks access tokens: JWTs (RFC 9068) that an authorization server signed for this service."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from msgspec import UNSET, Struct

from holdfast.accounts.addresses import Email, usable
from holdfast.events.oauth.model import SCOPES, AccessClaims, Subject
from holdfast.kit.security.public_keys import ALGORITHMS, REGISTRY, PublicKey, has_signed
from holdfast.kit.security.signing_keys import InvalidToken

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


def read(token: str) -> AccessToken:
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
    """Return the same claims. Raises `InvalidToken` if the token has expired."""
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
        wrong, missing = match.groups()
        defect = f"lacks the claim {missing}" if missing else f"has a malformed claim {wrong}"
        raise InvalidToken(f"The access token {defect}.") from error


def _words(scopes: str | list[str] | None) -> Sequence[str]:
    return scopes.split() if isinstance(scopes, str) else scopes or ()


def _verified_email(claims: _TokenClaims) -> str | None:
    if claims.email_verified is not True:
        return None
    try:
        claimed = msgspec.convert(claims.email, Email)
    except msgspec.ValidationError:
        return None
    # The Kelvin sign becomes an ASCII `k` in lower case. Such an address must not match one that was written with `k`.
    return usable(claimed) if claimed.rpartition("@")[0].isascii() else None
