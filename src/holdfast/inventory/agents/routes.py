"""The routes by which agents get their credentials, and the public keys that check these."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.routing import BaseRoute, Route

from holdfast.inventory.agents import operations
from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.model import grant, key_shown
from holdfast.inventory.problems import INVALID_REQUEST, error_body, oauth_body
from holdfast.inventory.resources import Database
from holdfast.kit.body import read_body
from holdfast.kit.caller import Caller
from holdfast.kit.handler import NO_STORE, Access, Handler, Header, Refuse, Reply, Request, encode, envelope, read_query
from holdfast.kit.limits import SLOT_SECONDS, Limits, Slots
from holdfast.kit.problems import BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED, Problem
from holdfast.kit.rest import parse
from holdfast.kit.signing import PUBLISHED

T = TypeVar("T")

PUBLIC: list[Header] = [
    (b"cache-control", b"public, max-age=%d" % PUBLISHED),
    (b"access-control-allow-origin", b"*"),
]


def routes(database: Database, limits: Limits, credentials: Credentials) -> list[BaseRoute]:
    """The routes by which agents get credentials."""
    registrations = Slots(1, SLOT_SECONDS)

    async def identity(_: Caller, request: Request) -> Reply:
        key = key_shown(await _read(request, "application/json", parse))
        # A registration locks its key: of several, one at a time takes a connection.
        async with registrations.of(key):
            registration = await database.transact(lambda tx: operations.register(tx, key))
        return Reply(200, encode(await credentials.identify(registration)), [NO_STORE])

    async def token(_: Caller, request: Request) -> Reply:
        form = await _read(request, "application/x-www-form-urlencoded", read_query)
        return Reply(200, encode(await credentials.exchange(grant(form, credentials.resources))), [NO_STORE])

    async def jwks(_: Caller, request: Request) -> Reply:
        return Reply(200, encode(await credentials.tokens.jwks()), PUBLIC)

    def post(name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], refuse: Refuse) -> Handler:
        return Handler(Access(name, None, "identities"), limits, answer, refuse, methods=("POST",))

    return [
        Route("/api/agent/identity", post("register_agent", identity, envelope(error_body))),
        Route("/oauth/token", post("exchange_assertion", token, envelope(oauth_body))),
        Route("/.well-known/jwks.json", Handler(Access("list_signing_keys"), limits, jwks, envelope(error_body))),
    ]


async def _read(request: Request, media_type: str, read: Callable[[bytes], T]) -> T:
    """The body of a request. Raises `invalid_request`, the code of RFC 6749, for one that cannot be read."""
    try:
        return read(await read_body(request, media_type))
    except Problem as problem:
        if problem.type in {BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED}:
            raise INVALID_REQUEST(problem.message) from problem
        raise
