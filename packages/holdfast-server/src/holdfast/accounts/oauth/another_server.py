"""Another authorization server, to which the service reports the signed-in person and that person's consent.

Its API is that of Stytch Connected Apps (https://stytch.com/docs/api): it exchanges a trusted-auth token for a session,
returns the client and the requested scopes, and takes the decision. It answers with the address for the browser.
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
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.security.http_client import HttpClient, trusted_certificates

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 262_144
"""The limits of an answer."""

SESSION_MINUTES = 5

T = TypeVar("T")

log = structlog.get_logger()


class RequestingClient(Struct):
    """The client that requests authorization."""

    client_name: str


class RequestedScope(Struct):
    """A requested scope."""

    scope: str
    description: str
    is_grantable: bool


class ConsentPreview(Struct):
    """The client and the scopes of an authorization request."""

    client: RequestingClient
    scope_results: list[RequestedScope]


class _AttestedSession(Struct):
    session_token: str


class _Decision(Struct):
    redirect_uri: str


class _RefusalBody(Struct):
    error_message: str = ""


@dataclass(frozen=True)
class AnotherServer:
    """Another authorization server.

    api         the base address of its API
    id          the id of the project there
    secret      the secret of the project
    profile     the id of the profile there that has our issuer, audience and keys
    audience    the audience that it requires in trusted-auth tokens
    """

    api: str
    id: str
    secret: str
    profile: str
    audience: str

    async def begin(self, trusted: str) -> str:
        """Exchange a trusted-auth token for the token of a session there."""
        arguments = {"profile_id": self.profile, "token": trusted, "session_duration_minutes": SESSION_MINUTES}
        return (await self._ask("sessions/attest", arguments, _AttestedSession)).session_token

    async def preview(self, session: str, request: Mapping[str, Any]) -> ConsentPreview:
        """Return the client and the scopes of a request. Raises `invalid_request` if the server rejects the request."""
        return await self._ask("idp/oauth/authorize/start", {**request, "session_token": session}, ConsentPreview)

    async def decide(self, session: str, request: Mapping[str, Any], scopes: Sequence[str], *, allowed: bool) -> str:
        """Report the decision. Returns the address to which the browser is to be sent."""
        decision = {**request, "scopes": [*scopes], "consent_granted": allowed, "session_token": session}
        return (await self._ask("idp/oauth/authorize", decision, _Decision)).redirect_uri

    async def _ask(self, path: str, arguments: Mapping[str, Any], into: type[T]) -> T:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), await self._client() as http:
                response = await http.post(f"{self.api}/{path}", json=arguments)
            content = response.content[:MAX_ANSWER_BYTES]
            if 400 <= response.status_code < 500 and response.status_code not in {401, 403, 429}:
                reason = msgspec.json.decode(content, type=_RefusalBody).error_message
                log.info("the authorization server refused", path=path, status=response.status_code, said=reason[:500])
                raise INVALID_REQUEST("The authorization server does not accept this.", hint=reason[:300])
            if response.status_code != 200:
                raise ValueError(f"the answer is {response.status_code}")
            return msgspec.json.decode(content, type=into)
        except (TimeoutError, ValueError, httpx2.HTTPError) as error:  # msgspec's errors are ValueErrors
            log.warning("the authorization server did not answer", path=path, error=repr(error))
            raise SERVICE_UNAVAILABLE("The authorization server cannot be asked right now.", retry_after=5) from error

    async def _client(self) -> httpx2.AsyncClient:
        trusted = await asyncio.to_thread(trusted_certificates)
        return HttpClient(auth=(self.id, self.secret), timeout=TIMEOUT_SECONDS, verify=trusted, follow_redirects=False)
