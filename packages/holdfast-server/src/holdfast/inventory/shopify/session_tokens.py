"""Session tokens prove which merchant uses a page of the app inside the platform's admin.

Source: shopify.dev, "Session tokens". A token is a JWT signed with the app's client secret (HS256 only), valid for a
minute.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from holdfast.inventory.shopify.domains import is_domain

LEEWAY = 10
"""Seconds by which the platform's clock and ours may differ."""

MAX_CHARACTERS = 4_096
"""The most characters of a token."""

_SHAPE = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})")


class InvalidSessionToken(Exception):
    """The token is not a valid one of the platform for this app. The message says why."""


class SessionToken(NamedTuple):
    """The content of a token: the domain of the shop, and the ids of the user and of the user's session."""

    shop: str
    user_id: str
    session_id: str


class _TokenHeader(Struct):
    alg: str
    crit: msgspec.UnsetType | Any = msgspec.UNSET


class _TokenClaims(Struct):
    iss: str
    dest: str
    aud: str
    sub: str
    exp: int
    nbf: int
    sid: str = ""


def verify(token: str, client_id: str, secrets: Sequence[bytes], now: float) -> SessionToken:
    """The content of a token. Raises `InvalidSessionToken`.

    secrets    the app's client secrets, one of which must have signed
    now        seconds since 1970
    """
    parts = _SHAPE.fullmatch(token) if len(token) <= MAX_CHARACTERS else None
    if parts is None:
        raise InvalidSessionToken("This is not a session token.")
    try:
        header = msgspec.json.decode(_decoded(parts[1]), type=_TokenHeader)
        claims = msgspec.json.decode(_decoded(parts[2]), type=_TokenClaims)
        claimed = _decoded(parts[3])
    except (ValueError, RecursionError) as error:  # the errors of msgspec and binascii are ValueErrors
        raise InvalidSessionToken("This is not a session token.") from error
    if header.alg != "HS256" or header.crit is not msgspec.UNSET:
        raise InvalidSessionToken("The token is not signed by HS256 alone.")
    signed = f"{parts[1]}.{parts[2]}".encode()
    if not any(hmac.compare_digest(claimed, hmac.digest(secret, signed, "sha256")) for secret in secrets):
        raise InvalidSessionToken("The token is not signed by the storefront platform.")
    if not client_id or claims.aud != client_id:
        raise InvalidSessionToken("The token is for another app.")
    if now >= claims.exp + LEEWAY:
        raise InvalidSessionToken("The token has expired.")
    if now < claims.nbf - LEEWAY:
        raise InvalidSessionToken("The token is not valid yet.")
    shop = _host(claims.dest)
    if shop != _host(claims.iss) or not is_domain(shop):
        raise InvalidSessionToken("The token does not name one shop.")
    return SessionToken(shop, claims.sub, claims.sid)


def sign(claims: dict[str, Any], secret: bytes, header: dict[str, Any] | None = None) -> str:
    """A token as the platform makes it."""
    parts = (header or {"alg": "HS256", "typ": "JWT"}, claims)
    signed = ".".join(_encoded(msgspec.json.encode(part)) for part in parts)
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _host(url: str) -> str:
    """The host of an https address without port and user; empty for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme == "https" else ""


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
