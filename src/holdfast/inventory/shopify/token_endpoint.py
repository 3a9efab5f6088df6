"""The token endpoint of a shop: access tokens for a code, for a session token, and for a refresh token.

Source: shopify.dev, "Authorization code grant", "Token exchange" and "Expiring offline tokens". All of them ask for
offline tokens that expire, which apps made since 2026-04 must use.
"""

from typing import Any

import msgspec
from msgspec import Struct

from holdfast.inventory.shopify.platform import Answer, Platform, Refused, Unreachable, failed

PATH = "/admin/oauth/access_token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
OFFLINE = "urn:shopify:params:oauth:token-type:offline-access-token"


class Granted(Struct):
    """Tokens for a shop.

    expires_in               seconds until the access token ends; None: it does not end by itself
    refresh_token            what gets the next tokens, once; None if the access token does not end
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


class _Error(Struct):
    error: str = ""
    error_description: str = ""


class TokenEndpoint:
    """Asks shops for tokens, for one app.

    Raises `Unreachable`, and `Refused` with the code of the error: `invalid_grant` for a code or a refresh token that
    is not valid any more.
    """

    def __init__(self, platform: Platform, client_id: str, client_secret: str) -> None:
        self._platform = platform
        self._app = {"client_id": client_id, "client_secret": client_secret}

    async def for_code(self, shop: str, code: str) -> Granted:
        """Tokens for the code with which the platform sent the merchant back."""
        return await self._ask(shop, {"code": code, "expiring": "1"})

    async def for_session(self, shop: str, session_token: str) -> Granted:
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

    async def refreshed(self, shop: str, refresh_token: str) -> Granted:
        """The next tokens. Until one of them is used, the same refresh token gets them again."""
        return await self._ask(shop, {"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def _ask(self, shop: str, parameters: dict[str, Any]) -> Granted:
        answer = await self._platform.post(self._platform.at(shop, PATH), {**self._app, **parameters})
        if failure := failed(answer):
            raise failure
        if answer.status != 200:
            raise _refused(answer)
        try:
            granted = msgspec.json.decode(answer.content, type=Granted)
        except msgspec.DecodeError as error:
            raise Unreachable(f"The answer of the token endpoint cannot be read: {error}") from error
        if not granted.access_token or (granted.expires_in is not None and not granted.refresh_token):
            raise Unreachable("The answer of the token endpoint is not complete.")
        return granted


def _refused(answer: Answer) -> Refused:
    try:
        told = msgspec.json.decode(answer.content, type=_Error)
    except msgspec.DecodeError:
        told = _Error()
    why = told.error_description or told.error or "no reason is given"
    return Refused(f"The token endpoint answered with status {answer.status}: {why[:500]}", told.error[:100])
