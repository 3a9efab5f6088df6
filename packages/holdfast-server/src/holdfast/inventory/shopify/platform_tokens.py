"""Tokens of the platform: session tokens, which it signs for merchants, and access tokens, which the app requests.

A session token proves which merchant uses a page of the app inside the admin of the platform (shopify.dev, "Session
tokens"). It is a JWT signed with the client secret of the app (HS256 only), valid for a minute.

The token endpoint of a shop gives access tokens for a code, for a session token, and for a refresh token (shopify.dev,
"Authorization code grant", "Token exchange" and "Expiring offline tokens"). All of them request offline tokens that
expire, which apps made since 2026-04 must use.
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
from holdfast.inventory.shopify.platform_client import (
    Platform,
    PlatformAnswer,
    PlatformRefusal,
    PlatformUnreachable,
    failure_of,
)

LEEWAY_SECONDS = 10
"""Seconds by which the platform's clock and ours may differ."""

MAX_CHARACTERS = 4_096
"""The most characters of a token."""

_SHAPE = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})")

PATH = "/admin/oauth/access_token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
OFFLINE = "urn:shopify:params:oauth:token-type:offline-access-token"

SHOP_GONE = "shop_gone"
"""The service's own code of a refusal: there is no shop at this address any more."""

NO_APP = frozenset({"app_not_installed", "invalid_grant", SHOP_GONE})
"""Codes of refusals of a shop that gives this app no access. Others may come from a mistake in the settings."""

OTHER_ORGANIZATION = "shop_not_permitted"
"""The code of a refusal because the app is of another organization than the shop."""


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


def verify_session_token(token: str, client_id: str, secrets: Sequence[bytes], now: float) -> SessionToken:
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
    if now >= claims.exp + LEEWAY_SECONDS:
        raise InvalidSessionToken("The token has expired.")
    if now < claims.nbf - LEEWAY_SECONDS:
        raise InvalidSessionToken("The token is not valid yet.")
    shop = _host(claims.dest)
    if shop != _host(claims.iss) or not is_domain(shop):
        raise InvalidSessionToken("The token does not name one shop.")
    return SessionToken(shop, claims.sub, claims.sid)


def sign_session_token(claims: dict[str, Any], secret: bytes, header: dict[str, Any] | None = None) -> str:
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


class GrantedTokens(Struct):
    """Tokens for a shop.

    expires_in                  seconds until the access token ends; None: it does not end by itself
    refresh_token               gets the next tokens, once; None if the access token does not end
    refresh_token_expires_in    seconds until the refresh token ends
    """

    access_token: str
    scope: str
    expires_in: int | None = None
    refresh_token: str | None = None
    refresh_token_expires_in: int | None = None

    @property
    def scopes(self) -> frozenset[str]:
        return frozenset(scope for part in self.scope.split(",") if (scope := part.strip()))


class _TokenError(Struct):
    error: str = ""
    error_description: str = ""


class TokenEndpoint:
    """Requests tokens of shops, for one app.

    Raises `PlatformUnreachable`, and `PlatformRefusal` with the code of the error: `invalid_grant` for a code or a
    refresh token that is not valid any more.
    """

    def __init__(self, platform: Platform, client_id: str, client_secret: str) -> None:
        self._platform = platform
        self._app = {"client_id": client_id, "client_secret": client_secret}

    async def for_code(self, shop: str, code: str) -> GrantedTokens:
        """Tokens for the code with which the platform sent the merchant back."""
        return await self._ask(shop, {"code": code, "expiring": "1"})

    async def for_session(self, shop: str, session_token: str) -> GrantedTokens:
        """Tokens for a session token, which must have been verified."""
        return await self._ask(
            shop,
            {
                "grant_type": EXCHANGE,
                "subject_token": session_token,
                "subject_token_type": ID_TOKEN,
                "requested_token_type": OFFLINE,
                "expiring": "1",
            },
        )

    async def refreshed(self, shop: str, refresh_token: str) -> GrantedTokens:
        """The next tokens. Until one of them is used, the same refresh token gets them again."""
        return await self._ask(shop, {"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def has_app(self, shop: str) -> bool | None:
        """Whether the app is installed at a shop without a token; None if the platform does not say.

        The platform gives tokens without a merchant only to apps of the shop's own organization, and for others names
        only that reason. Raises as every call does, unless the refusal is about this shop.
        """
        try:
            await self._ask(shop, {"grant_type": "client_credentials"})
        except PlatformRefusal as refusal:
            if refusal.code in NO_APP:
                return False
            if refusal.code == OTHER_ORGANIZATION:
                return None
            raise
        return True

    async def _ask(self, shop: str, parameters: dict[str, Any]) -> GrantedTokens:
        answer = await self._platform.post(self._platform.at(shop, PATH), {**self._app, **parameters})
        if failure := failure_of(answer):
            raise failure
        if answer.status != 200:
            raise _refusal(answer)
        try:
            granted_tokens = msgspec.json.decode(answer.content, type=GrantedTokens)
        except msgspec.DecodeError as error:
            raise PlatformUnreachable(f"The answer of the token endpoint cannot be read: {error}") from error
        if not granted_tokens.access_token or (
            granted_tokens.expires_in is not None and not granted_tokens.refresh_token
        ):
            raise PlatformUnreachable("The answer of the token endpoint is not complete.")
        return granted_tokens


def _refusal(answer: PlatformAnswer) -> PlatformRefusal:
    try:
        error = msgspec.json.decode(answer.content, type=_TokenError)
    except msgspec.DecodeError:
        error = _TokenError()
    why = error.error_description or error.error or "no reason is given"
    code = SHOP_GONE if answer.status == 404 else error.error[:100]
    return PlatformRefusal(f"The token endpoint answered with status {answer.status}: {why[:500]}", code)
