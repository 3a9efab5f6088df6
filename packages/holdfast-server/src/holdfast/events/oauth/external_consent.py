"""The page `/oauth/authorize` on behalf of another authorization server, such as Stytch Connected Apps.

The other server sends people to this page to sign in and to consent. This service sends the other server a trusted-auth
token that identifies the person, and the decision. The other server issues the code and the tokens, and answers with
the address for the browser. Its API is that of https://stytch.com/docs/api.

The keys of trusted-auth tokens are always published, so that such a server can be set up with their address.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog
from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.events.oauth_server import consent, redirect_addresses
from holdfast.events.oauth_server.model import AUTHORIZE, CHALLENGE, MAX_NAME_CHARS, Client, Terms
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST
from holdfast.events.oauth_settings import DOCUMENTS
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.mail.message import header_text
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.process.discovery import keys_document
from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast.kit.security.service_secret import SealedTable
from holdfast.kit.security.signed_tokens import SigningKeyTable, TokenType

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

    async def begin(self, trusted_token: str) -> str:
        """Exchange a trusted-auth token for the token of a session there."""
        arguments = {"profile_id": self.profile, "token": trusted_token, "session_duration_minutes": SESSION_MINUTES}
        return (await self._ask("sessions/attest", arguments, _AttestedSession)).session_token

    async def preview(self, session: str, request: Mapping[str, Any]) -> ConsentPreview:
        """The client and the scopes of a request. Raises `invalid_request` if the server rejects the request."""
        return await self._ask("idp/oauth/authorize/start", {**request, "session_token": session}, ConsentPreview)

    async def decide(self, session: str, request: Mapping[str, Any], scopes: Sequence[str], *, is_allowed: bool) -> str:
        """Report the decision. Returns the address to which the browser is to be sent."""
        decision = {**request, "scopes": [*scopes], "consent_granted": is_allowed, "session_token": session}
        return (await self._ask("idp/oauth/authorize", decision, _Decision)).redirect_uri

    async def _ask(self, path: str, arguments: Mapping[str, Any], into: type[T]) -> T:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), await self._client() as http:
                response = await http.post(f"{self.api}/{path}", json=arguments)
            content = response.content[:MAX_ANSWER_BYTES]
            if 400 <= response.status_code < 500 and response.status_code not in {401, 403, 429}:
                reason = msgspec.json.decode(content, type=_RefusalBody).error_message
                log.info(
                    "the authorization server refused", path=path, status=response.status_code, reason=reason[:500]
                )
                raise INVALID_REQUEST("The authorization server does not accept this.", hint=reason[:300])
            if response.status_code != 200:
                raise ValueError(f"the answer is {response.status_code}")
            return msgspec.json.decode(content, type=into)
        except (TimeoutError, ValueError, httpx2.HTTPError) as error:  # msgspec's errors are ValueErrors
            log.warning("the authorization server did not answer", path=path, error=repr(error))
            raise SERVICE_UNAVAILABLE("The authorization server cannot be asked right now.", retry_after=5) from error

    async def _client(self) -> httpx2.AsyncClient:
        certificates = await asyncio.to_thread(trusted_certificates)
        return HttpClient(
            auth=(self.id, self.secret), timeout=TIMEOUT_SECONDS, verify=certificates, follow_redirects=False
        )


JWKS = "/oauth/trusted-auth/jwks.json"


class TrustedAuthClaims(Struct, frozen=True):
    """The claims of a trusted-auth token."""

    iss: str
    aud: str
    sub: str
    email: str
    email_verified: bool
    jti: str
    iat: int
    exp: int


TRUSTED_AUTH = TokenType("JWT", TrustedAuthClaims, lambda claims: claims.aud, lifetime=300)
KEYS = SigningKeyTable("trusted_auth_keys", "RS256", TRUSTED_AUTH.lifetime)
SEALED = SealedTable("trusted_auth_keys", "kid", "text")


def trusted_auth_routes(database: Database[Any], limits: Limits) -> list[Route]:
    """The route of the public keys."""

    async def jwks() -> Mapping[str, Any]:
        return (await database.transact(KEYS.read_or_create)).jwks()

    return [keys_document(JWKS, "list_trusted_auth_keys", limits, jwks)]


async def token(tx: Tx[Any], session: Session, issuer: str, audience: str) -> str:
    """A token that identifies the signed-in person. The owner of the address must have proved it."""
    keys = await KEYS.read_or_create(tx)
    now = int(keys.now)
    claims = TrustedAuthClaims(
        iss=issuer,
        aud=audience,
        sub=str(session.account_id),
        email=session.email,
        email_verified=True,
        jti=secrets.token_urlsafe(16),
        iat=now,
        exp=now + TRUSTED_AUTH.lifetime,
    )
    # A signature takes half a millisecond, so it is computed in a thread and does not block the event loop.
    return await asyncio.to_thread(keys.sign, TRUSTED_AUTH, claims)


async def rotate_trusted_auth_keys(tx: Tx[Any]) -> int:
    """Add a key, and delete those that are no longer needed. Returns how many keys changed."""
    return await KEYS.rotate(tx)


_PAGE_PROBLEMS = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})


def routes(
    database: Database[Any], terms: Terms, server: AnotherServer, signed_in: SignedInPages, limits: Limits
) -> list[Route]:
    """The route of the page."""
    return [
        signed_in.route(
            AUTHORIZE, "authorize", ExternalConsentPage(database, terms, server, signed_in, limits).answer, "POST"
        )
    ]


class ExternalConsentPage:
    """Asks a signed-in person whether a client of another server may act for them, and reports to that server."""

    def __init__(
        self, database: Database[Any], terms: Terms, server: AnotherServer, signed_in: SignedInPages, limits: Limits
    ) -> None:
        self._database = database
        self._terms = terms
        self._server = server
        self._signed_in = signed_in
        self._limits = limits

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the consent form, or execute the decision in the form."""
        site = self._terms.site
        if error_page := consent.ineligibility_page(site, session, request):
            return error_page
        try:
            parameters = parameters_to_forward(consent.query_of(request))
            fields = await self._signed_in.read(session, request) if request.method == "POST" else {}
            await self._limits.hit(DOCUMENTS, f"account {session.account_id}")
            return await self._show_or_decide(session, request, parameters, fields.get("decision"))
        except Problem as problem:
            if problem.type not in _PAGE_PROBLEMS:
                raise
            return consent.problem_page(site, problem, request)

    async def _show_or_decide(
        self, session: Session, request: Request, parameters: Mapping[str, Any], decision: str | None
    ) -> Reply:
        """Show the form; or, with a decision, send it to the other server and redirect the person."""
        trusted_token = await self._database.transact(
            lambda tx: token(tx, session, self._terms.issuer, self._server.audience)
        )
        session_token = await self._server.begin(trusted_token)
        preview = await self._server.preview(
            session_token, {name: parameters[name] for name in PREVIEW_PARAMETERS if name in parameters}
        )
        grantable = [result for result in preview.scope_results if result.is_grantable]
        redirect_uri = parameters["redirect_uri"]
        if decision not in {"allow", "refuse"}:
            return consent.page(
                self._terms.site,
                "oauth_server/consent.html",
                422 if request.method == "POST" else 200,
                request,
                forms=redirect_addresses.form_action_source(redirect_uri),
                client=Client(parameters["client_id"], _plain_name(preview.client.client_name), [redirect_uri]),
                target=redirect_addresses.redirect_target(redirect_uri),
                meanings=self._meanings(grantable, request),
                email=session.email,
                token=self._signed_in.token(session),
                action=consent.action(request),
            )
        scopes = [result.scope for result in grantable]
        address = await self._server.decide(session_token, parameters, scopes, is_allowed=decision == "allow")
        if _destination(address) != _destination(redirect_uri):
            raise INVALID_REDIRECT_URI("The authorization server would send you elsewhere than the app asked.")
        return redirect(address)

    def _meanings(self, grantable: Sequence[RequestedScope], request: Request) -> Sequence[str]:
        ours = self._terms.scopes
        return [
            self._terms.meanings([result.scope], language_of(request))[0]
            if result.scope in ours
            else header_text(result.description)
            for result in grantable
        ]


PREVIEW_PARAMETERS = ("client_id", "redirect_uri", "response_type", "scopes", "prompt")
"""The parameters that the other server checks before the person is asked."""


def parameters_to_forward(query: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a request for the other server. Raises a `Problem` if it must not be passed on."""
    if not query.get("client_id"):
        raise INVALID_CLIENT("The request names no client.", hint="Start again in the app.")
    if not redirect_addresses.is_acceptable(query.get("redirect_uri", "")):
        raise INVALID_REDIRECT_URI()
    if query.get("response_type") != "code":
        raise INVALID_REQUEST("response_type must be code.")
    if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(query.get("code_challenge", "")):
        raise INVALID_REQUEST("There is no code challenge, or not one of the method S256.")
    known_names = ("client_id", "redirect_uri", "response_type", "prompt", "state", "nonce", "code_challenge")
    request: dict[str, Any] = {name: query[name] for name in known_names if name in query}
    request["scopes"] = query.get("scope", "").split()
    if "resource" in query:
        request["resources"] = [query["resource"]]
    return request


def _destination(address: str) -> tuple[str, str, str]:
    """Scheme, host and path of an address, without its query."""
    parts = urlsplit(address)
    return parts.scheme, parts.netloc, parts.path or "/"


def _plain_name(name: str) -> str | None:
    return header_text(name)[:MAX_NAME_CHARS].strip() or None
