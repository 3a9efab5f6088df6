"""The routes by which agents get their credentials, and the public keys that check these."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.inventory.agents import credentials as operations
from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.model import requested_grant, requested_key
from holdfast.inventory.problems import INVALID_REQUEST, error_body, oauth_body
from holdfast.inventory.resources import Database
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED, Problem
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import (
    NO_STORE,
    Access,
    Handler,
    RenderProblem,
    Reply,
    Request,
    encode,
    envelope,
    read_query,
)
from holdfast.kit.http.index import Route
from holdfast.kit.http.rest import decode_object
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.slots import MAX_WAITING, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.process.discovery import keys_document

T = TypeVar("T")

IDENTITIES = bound_without_strangers(
    name="Requests for the identity of one key",
    service="inventory",
    total="none",
    tenant=f"1 for each key; {MAX_WAITING} wait",
)


def routes(database: Database, limits: Limits, credentials: Credentials) -> list[Route]:
    """The routes by which agents get credentials."""
    registrations = Slots(IDENTITIES, 1, timeout=SLOT_TIMEOUT_SECONDS)

    async def identity(_: Caller, request: Request) -> Reply:
        key = requested_key(await _read(request, "application/json", decode_object))
        # A registration locks its key, so for each key only one at a time takes a connection.
        async with registrations.slot_of((key,)):
            registration = await database.transact(lambda tx: operations.register(tx, key))
        return Reply(200, encode(await credentials.identify(registration)), [NO_STORE])

    async def token(_: Caller, request: Request) -> Reply:
        form = await _read(request, "application/x-www-form-urlencoded", read_query)
        return Reply(200, encode(await credentials.exchange(requested_grant(form, credentials.resources))), [NO_STORE])

    def post(name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], refuse: RenderProblem) -> Handler:
        return Handler(Access(name, None, "identities"), limits, answer, refuse, methods=("POST",))

    return [
        Route("/api/agent/identity", post("register_agent", identity, envelope(error_body))),
        Route("/oauth/token", post("exchange_assertion", token, envelope(oauth_body))),
        keys_document("/.well-known/jwks.json", "list_signing_keys", limits, credentials.tokens.jwks, error_body),
    ]


async def _read(request: Request, media_type: str, read: Callable[[bytes], T]) -> T:
    """The body of a request. Raises `invalid_request`, the code of RFC 6749, for an unreadable one."""
    try:
        return read(await read_body(request, media_type))
    except Problem as problem:
        if problem.type in {BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED}:
            raise INVALID_REQUEST(problem.message) from problem
        raise
