"""Another authorization server, that is told who is signed in here and what they allow.

It is spoken to as the API of Stytch Connected Apps is (https://stytch.com/docs/api): it exchanges a trusted-auth token
for a session, says who asks and for what, and is told the decision. It then says where to send the browser.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec
import structlog
from msgspec import Struct

from holdfast.accounts.oauth.problems import INVALID_REQUEST
from holdfast.kit.problems import SERVICE_UNAVAILABLE

TIMEOUT = 10.0
LARGEST = 262_144
"""The most seconds and bytes of an answer."""

SESSION_MINUTES = 5

T = TypeVar("T")

log = structlog.get_logger()


class Asking(Struct):
    """The client that asks."""

    client_name: str


class Wanted(Struct):
    """A scope that is asked for."""

    scope: str
    description: str
    is_grantable: bool


class Preview(Struct):
    """Who asks, and for what."""

    client: Asking
    scope_results: list[Wanted]


class _Session(Struct):
    session_token: str


class _Decided(Struct):
    redirect_uri: str


class _Refused(Struct):
    error_message: str = ""


@dataclass(frozen=True)
class AnotherServer:
    """Another authorization server.

    api         the base address of its API
    id          of the project there
    secret      of the project
    profile     the id of the profile in which it was told our issuer, audience and keys
    audience    the audience that it wants in trusted-auth tokens
    """

    api: str
    id: str
    secret: str
    profile: str
    audience: str

    async def begin(self, trusted: str) -> str:
        """The token of a session there, for a trusted-auth token."""
        arguments = {"profile_id": self.profile, "token": trusted, "session_duration_minutes": SESSION_MINUTES}
        return (await self._ask("sessions/attest", arguments, _Session)).session_token

    async def preview(self, session: str, request: Mapping[str, Any]) -> Preview:
        """Who asks, and for what. Raises `invalid_request` if the server does not accept the request."""
        return await self._ask("idp/oauth/authorize/start", {**request, "session_token": session}, Preview)

    async def decide(self, session: str, request: Mapping[str, Any], scopes: Sequence[str], *, allowed: bool) -> str:
        """Tell it what was decided. Returns the address to which it wants the browser sent."""
        decision = {**request, "scopes": [*scopes], "consent_granted": allowed, "session_token": session}
        return (await self._ask("idp/oauth/authorize", decision, _Decided)).redirect_uri

    async def _ask(self, path: str, arguments: Mapping[str, Any], into: type[T]) -> T:
        try:
            async with asyncio.timeout(TIMEOUT), await asyncio.to_thread(self._client) as http:
                response = await http.post(f"{self.api}/{path}", json=arguments)
            content = response.content[:LARGEST]
            if 400 <= response.status_code < 500 and response.status_code not in {401, 403, 429}:
                said = msgspec.json.decode(content, type=_Refused).error_message
                log.info("the authorization server refused", path=path, status=response.status_code, said=said[:500])
                raise INVALID_REQUEST("The authorization server does not accept this.", hint=said[:300])
            if response.status_code != 200:
                raise ValueError(f"the answer is {response.status_code}")
            return msgspec.json.decode(content, type=into)
        except (TimeoutError, ValueError, httpx2.HTTPError) as error:  # msgspec's errors are ValueErrors
            log.warning("the authorization server did not answer", path=path, error=repr(error))
            raise SERVICE_UNAVAILABLE("The authorization server cannot be asked right now.", retry_after=5) from error

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(auth=(self.id, self.secret), timeout=TIMEOUT, follow_redirects=False)
