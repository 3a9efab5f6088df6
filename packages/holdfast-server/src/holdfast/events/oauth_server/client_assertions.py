"""Client assertions: JWTs that a client signs with its own key, to prove who it is (RFC 7523, sections 2.2 and 3).

An assertion comes with a code, a refresh token or an access token, which the server looks up. So an assertion that is
sent again gets nothing that its first use did not get, and the `jti` of assertions is not stored.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from msgspec import UNSET, Struct

from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT
from holdfast.kit.security.signed_tokens import ALGORITHMS, REGISTRY

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

LEEWAY_SECONDS = 60
"""Seconds by which the clocks of a client and this machine may differ."""

MAX_LIFETIME_SECONDS = 3_600
"""The most seconds for which an assertion may be valid."""


class ClientAssertion(NamedTuple):
    """An assertion whose claims are right. Its signature is not verified yet.

    client_id    the client that it names
    key_id       the id of the key that signed it; None: it names none
    parts        its header, claims and signature
    """

    client_id: str
    key_id: str | None
    parts: jws.CompactSignature


class _Header(Struct):
    """The header of an assertion. Other members, such as embedded keys or addresses of keys, are ignored."""

    alg: str
    kid: str | None = None
    crit: Any = UNSET


class _Claims(Struct):
    iss: str
    sub: str
    aud: str | list[str]
    exp: float
    nbf: float = 0
    iat: float = 0


def read_assertion(form: Mapping[str, str], audiences: Collection[str], now: float) -> ClientAssertion | None:
    """The assertion in a form; None if there is none. Raises `invalid_client`.

    audiences    the names of this server, one of which the assertion must have as its audience
    now          seconds since 1970
    """
    text = form.get("client_assertion")
    if text is None and "client_assertion_type" not in form:
        return None
    if form.get("client_assertion_type") != JWT_BEARER:
        raise INVALID_CLIENT("The client_assertion_type is not known.", hint=f"Send {JWT_BEARER}.")
    try:
        parts = jws.extract_compact((text or "").encode(), registry=REGISTRY)
        header, claims = msgspec.convert(parts.headers(), _Header), msgspec.json.decode(parts.payload, type=_Claims)
    except (JoseError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise INVALID_CLIENT(
            "The client_assertion is not a signed JWT with the claims iss, sub, aud and exp.",
            hint="Compare it with RFC 7523, section 3.",
        ) from error
    if problem := _defect(header, claims, audiences, now):
        raise INVALID_CLIENT(f"The client_assertion {problem}.", hint="Compare it with RFC 7523, section 3.")
    if form.get("client_id", claims.sub) != claims.sub:
        raise INVALID_CLIENT("The client_assertion is another client's than client_id.")
    return ClientAssertion(claims.sub, header.kid, parts)


def _defect(header: _Header, claims: _Claims, audiences: Collection[str], now: float) -> str | None:
    """What is wrong with an assertion, as the end of a sentence; None if nothing is."""
    if header.alg not in ALGORITHMS:
        return f"is signed in a way that is not accepted; accepted are {', '.join(sorted(ALGORITHMS))}"
    if header.crit is not UNSET:
        return "needs an extension that is not known"
    if claims.iss != claims.sub:
        return "names two clients: its iss and its sub differ"
    if not {*audiences} & {*([claims.aud] if isinstance(claims.aud, str) else claims.aud)}:
        return f"is not for this server: its aud must be {' or '.join(audiences)}"
    if claims.exp + LEEWAY_SECONDS <= now:
        return "has expired"
    if claims.exp - LEEWAY_SECONDS > now + MAX_LIFETIME_SECONDS:
        return f"is valid for more than {MAX_LIFETIME_SECONDS} seconds"
    if max(claims.nbf, claims.iat) - LEEWAY_SECONDS > now:
        return "is from the future"
    return None
