"""Where agents get their credentials: `POST /api/agent/identity`, `POST /oauth/token`, and the keys to check them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.agents import operations
from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.model import AccessToken, Identity, grant, key_shown
from holdfast.inventory.problems import INVALID_REQUEST, error_body, oauth_body
from holdfast.inventory.settings import Database
from holdfast.kit.decode import parse, read_body, read_query
from holdfast.kit.limits import Limits
from holdfast.kit.problems import BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED, ErrorBody, Problem
from holdfast.kit.rest import address, answered, headers_of, unexpected
from holdfast.kit.signing import PUBLISHED

T = TypeVar("T")


def routes(database: Database, limits: Limits, credentials: Credentials) -> list[BaseRoute]:
    """The routes by which agents get credentials."""

    async def identity(request: Request) -> Identity:
        await limits.hit("identities", address(request.scope))
        key = key_shown(await _read(request, "application/json", parse))
        registration = await database.transact(lambda tx: operations.register(tx, key))
        return await credentials.identify(registration)

    async def token(request: Request) -> AccessToken:
        await limits.hit("identities", address(request.scope))
        form = await _read(request, "application/x-www-form-urlencoded", read_query)
        return await credentials.exchange(grant(form, credentials.resources))

    async def jwks(_: Request) -> dict[str, Any]:
        return await credentials.tokens.jwks()

    public = {"Cache-Control": f"public, max-age={PUBLISHED}", "Access-Control-Allow-Origin": "*"}
    return [
        Route("/api/agent/identity", _answer("register_agent", identity, error_body), methods=["POST"]),
        Route("/oauth/token", _answer("exchange_assertion", token, oauth_body), methods=["POST"]),
        Route("/.well-known/jwks.json", _answer("list_signing_keys", jwks, error_body, public)),
    ]


async def _read(request: Request, kind: str, read: Callable[[bytes], T]) -> T:
    try:
        return read(await read_body(dict(request.scope["headers"]), request.receive, kind))
    except Problem as problem:
        if problem.kind in {BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED}:
            raise INVALID_REQUEST(problem.message) from problem  # the word of RFC 6749
        raise


def _answer(
    name: str,
    handle: Callable[[Request], Awaitable[Any]],
    shape: ErrorBody,
    headers: Mapping[str, str] = {"Cache-Control": "no-store"},
) -> Callable[[Request], Awaitable[Response]]:
    """A route that answers with what `handle` returns, and refuses in a shape of its own."""

    async def respond(request: Request) -> Response:
        try:
            response = Response(msgspec.json.encode(await handle(request)), 200, headers, "application/json")
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error, name)
            content = msgspec.json.encode(shape(problem))
            response = Response(content, problem.status, {"Cache-Control": "no-store"}, "application/json")
            response.raw_headers.extend(headers_of(problem))
        answered(name, response.status_code).inc()
        return response

    return respond
