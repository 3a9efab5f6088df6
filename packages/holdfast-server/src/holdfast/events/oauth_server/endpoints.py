"""The endpoints for programs: metadata, registration, tokens, revocation."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.events.oauth_server import clients, tokens
from holdfast.events.oauth_server.authorization import require_resource
from holdfast.events.oauth_server.client_assertions import ClientAssertion, read_assertion
from holdfast.events.oauth_server.clients import Clients
from holdfast.events.oauth_server.model import (
    METADATA,
    OLD_TOKEN,
    REGISTER,
    REVOKE,
    TOKEN,
    VERIFIER,
    OAuthTokens,
    Terms,
)
from holdfast.events.oauth_server.oauth_problems import (
    INVALID_CLIENT_METADATA,
    INVALID_GRANT,
    INVALID_REQUEST,
    UNREADABLE,
    UNSUPPORTED_GRANT_TYPE,
    error_body,
)
from holdfast.events.oauth_settings import ALL_REGISTRATIONS, REGISTRATIONS, TOKENS
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import (
    NO_STORE,
    Access,
    Handler,
    Header,
    Reply,
    Request,
    admit,
    encode,
    envelope,
    read_query,
)
from holdfast.kit.http.index import Route
from holdfast.kit.http.rest import decode_object
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.slots import MAX_WAITING, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.pages.forms import FORM_TYPE
from holdfast.kit.postgres.database import Tx
from holdfast.kit.process import discovery

T = TypeVar("T")

ALLOW_ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")
"""Pages of any site may call: every caller authenticates with a secret, and cookies are not read here."""

PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"Content-Type, MCP-Protocol-Version"),
    (b"access-control-max-age", b"600"),
)

Answer = Callable[[Caller, Request], Awaitable[Reply]]


def routes(runner: Runner, terms: Terms, client_finder: Clients, limits: Limits) -> list[Route]:
    """The routes of the endpoints."""
    endpoints = Endpoints(runner, terms, client_finder, limits)

    def post(path: str, name: str, limit: str, answer: Answer) -> Route:
        access = Access(name, None, limit)

        async def respond(caller: Caller, request: Request) -> Reply:
            if request.method == "OPTIONS":
                return Reply(204, headers=(ALLOW_ANY_ORIGIN, *PREFLIGHT))
            await admit(access, limits, caller)
            reply = await answer(caller, request)
            reply.headers = (NO_STORE, ALLOW_ANY_ORIGIN)
            return reply

        methods = ("POST", "OPTIONS")
        return Route(
            path,
            Handler(Access(name), limits, respond, envelope(error_body, ALLOW_ANY_ORIGIN), methods=methods),
        )

    return [
        discovery.document(METADATA, discovery.json(terms.metadata())),
        post(REGISTER, "register_client", REGISTRATIONS, endpoints.register),
        post(TOKEN, "issue_tokens", TOKENS, endpoints.token),
        post(OLD_TOKEN, "issue_tokens", TOKENS, endpoints.token),
        post(REVOKE, "revoke_token", TOKENS, endpoints.revoke),
    ]


EXCHANGES = bound_without_strangers(
    name="Exchanges of one code or refresh token",
    service="events",
    total="none",
    tenant=f"1 for each secret; {MAX_WAITING} wait",
)


class Endpoints:
    """Answers the requests that clients make without a person."""

    def __init__(self, runner: Runner, terms: Terms, client_finder: Clients, limits: Limits) -> None:
        self._runner = runner
        self._terms = terms
        self._clients = client_finder
        self._audiences = (f"{terms.issuer}{TOKEN}", terms.issuer, f"{terms.issuer}{OLD_TOKEN}")
        self._limits = limits
        self._locks = Slots(EXCHANGES, 1, timeout=SLOT_TIMEOUT_SECONDS)

    async def register(self, caller: Caller, request: Request) -> Reply:
        """Register a client (RFC 7591). It gets an id and no secret."""
        try:
            metadata = decode_object(await read_body(request))
        except Problem as problem:
            if problem.type not in UNREADABLE:
                raise
            raise INVALID_CLIENT_METADATA(problem.message) from problem
        new = clients.register(metadata)
        await self._limits.hit_shared(ALL_REGISTRATIONS, "everybody", caller.name)
        issued_at = await self._runner.transact(caller, lambda tx: clients.insert(tx, new))
        about = {
            "client_id": new.id,
            "client_id_issued_at": issued_at,
            **({"client_name": new.name} if new.name else {}),
            "redirect_uris": new.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return Reply(201, encode(about))

    async def token(self, caller: Caller, request: Request) -> Reply:
        """Issue tokens for a code or a refresh token (RFC 6749, sections 4.1.3 and 6)."""
        form = await _form(request)
        assertion, client_id = self._client(form)
        require_resource(self._terms, form)
        match _required(form, "grant_type"):
            case "authorization_code":
                code, verifier = _required(form, "code"), _required(form, "code_verifier")
                if not VERIFIER.fullmatch(verifier):
                    raise INVALID_GRANT("The code_verifier cannot belong to a code.")
                redirect_uri = form.get("redirect_uri")
                await self._clients.authenticate(client_id, code, assertion)
                issued_tokens = await self._once(
                    caller, code, lambda tx: tokens.redeem(tx, code, client_id, verifier, redirect_uri)
                )
            case "refresh_token":
                token = _required(form, "refresh_token")
                scopes = form["scope"].split() if "scope" in form else None
                await self._clients.authenticate(client_id, token, assertion)
                issued_tokens = await self._once(caller, token, lambda tx: tokens.refresh(tx, token, client_id, scopes))
            case other:
                raise UNSUPPORTED_GRANT_TYPE(f"This grant type is not supported: {other[:100]}.")
        return Reply(200, encode(_token_response(issued_tokens)))

    async def revoke(self, caller: Caller, request: Request) -> Reply:
        """End a token (RFC 7009). The answer is the same if the token is not known, or has ended before."""
        form = await _form(request)
        token = _required(form, "token")
        assertion, client_id = self._client(form)
        await self._clients.authenticate(client_id, token, assertion)
        await self._once(caller, token, lambda tx: tokens.revoke(tx, token, client_id))
        return Reply(200)

    def _client(self, form: Mapping[str, str]) -> tuple[ClientAssertion | None, str]:
        """The assertion in a form, and the client that the form names. Raises `invalid_client`."""
        assertion = read_assertion(form, self._audiences, time.time())
        return assertion, assertion.client_id if assertion else _required(form, "client_id")

    async def _once(self, caller: Caller, secret: str, work: Callable[[Tx[Any]], Awaitable[T | Problem]]) -> T:
        """Run `work`, and raise the problem that it returns: after the commit, since its writes must be kept.

        Work with the same secret locks the same rows, so only one such call at a time takes a connection.
        """
        async with self._locks.slot_of((secret,)):
            result = await self._runner.transact(caller, work)
        if isinstance(result, Problem):
            raise result
        return result


async def _form(request: Request) -> Mapping[str, str]:
    """The fields of a form. Raises `invalid_request`."""
    try:
        return read_query(await read_body(request, FORM_TYPE))
    except Problem as problem:
        if problem.type not in UNREADABLE:
            raise
        raise INVALID_REQUEST(problem.message) from problem


def _required(form: Mapping[str, str], name: str) -> str:
    if not form.get(name):
        raise INVALID_REQUEST(f"{name} is missing.")
    return form[name]


def _token_response(tokens: OAuthTokens) -> dict[str, Any]:
    return {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.seconds,
        "refresh_token": tokens.refresh,
        "scope": " ".join(tokens.scopes),
    }
